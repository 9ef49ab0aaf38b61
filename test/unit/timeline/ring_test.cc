// The ring: what is written is read, in order; what is overwritten is counted; a live ring and a
// damaged one.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "test/unit/timeline/ring_memory.h"
#include "timeline/recorder.h"
#include "timeline/ring_reader.h"

namespace hvd {
namespace {

TraceRecord Event(uint64_t number) {
  return {.stamp = number, .kind = TraceKind::kDone, .id = 1, .bytes = number * 3};
}

TEST(RingTest, WhatIsWrittenIsReadOnceAndInOrder) {
  RingMemory memory(64);
  Recorder recorder(memory.span());
  RingReader reader(memory.span());
  for (uint64_t i = 1; i <= 10; ++i) recorder.Write(Event(i));
  std::vector<TraceRecord> records;
  EXPECT_TRUE(reader.HasMore());
  EXPECT_EQ(reader.Read(&records, 7), 0U);
  EXPECT_EQ(records.size(), 7U);
  EXPECT_EQ(reader.Read(&records, 100), 0U);
  ASSERT_EQ(records.size(), 10U);
  for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(records[i], Event(i + 1));
  EXPECT_FALSE(reader.HasMore());
}

TEST(RingTest, WhatIsOverwrittenIsCounted) {
  RingMemory memory(64);
  Recorder recorder(memory.span());
  RingReader reader(memory.span());
  for (uint64_t i = 1; i <= 200; ++i) recorder.Write(Event(i));
  std::vector<TraceRecord> records;
  const uint64_t lost = reader.Read(&records, 1000);
  // The place of the oldest one may be written again at any moment.
  EXPECT_EQ(lost, 200U - 63U);
  ASSERT_EQ(records.size(), 63U);
  EXPECT_EQ(records.front(), Event(138));
  EXPECT_EQ(records.back(), Event(200));
}

TEST(RingTest, ALiveRingIsReadWithoutTornRecords) {
  RingMemory memory(256);
  constexpr uint64_t kRecords = 200000;
  std::atomic<bool> over{false};
  std::thread writer([&] {
    Recorder recorder(memory.span());
    for (uint64_t i = 1; i <= kRecords; ++i) recorder.Write(Event(i));
    over = true;
  });
  RingReader reader(memory.span());
  uint64_t next = 1, lost = 0, read = 0;
  for (bool last = false; !last;) {
    last = over;
    std::vector<TraceRecord> records;
    const uint64_t gap = reader.Read(&records, 100);
    lost += gap;
    next += gap;
    read += records.size();
    for (const TraceRecord& record : records) ASSERT_EQ(record, Event(next++));
    last = last && !reader.HasMore();
  }
  writer.join();
  EXPECT_EQ(read + lost, kRecords);
}

TEST(RingTest, ANameIsToldAgainBeforeTheRingForgetsIt) {
  RingMemory memory(64);
  Recorder recorder(memory.span());
  TraceName name;
  EXPECT_FALSE(recorder.Knows(name));
  recorder.Tell(&name, "a name of more than twenty-four bytes");
  EXPECT_TRUE(recorder.Knows(name));
  for (uint64_t i = 0; i < 31; ++i) recorder.Write(Event(i));
  EXPECT_FALSE(recorder.Knows(name));
  const uint32_t id = name.id;
  recorder.Tell(&name, "a name of more than twenty-four bytes");
  EXPECT_EQ(name.id, id);
  name.Change();
  EXPECT_FALSE(recorder.Knows(name));
}

TEST(RingTest, ARecorderContinuesWhereTheLastOneStopped) {
  RingMemory memory(64);
  Recorder(memory.span()).Write(Event(1));
  Recorder(memory.span()).Write(Event(2));
  RingReader reader(memory.span());
  std::vector<TraceRecord> records;
  reader.Read(&records, 10);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1], Event(2));
}

TEST(RingTest, AReaderAsksForMore) {
  RingMemory memory(64);
  Recorder recorder(memory.span());
  RingReader reader(memory.span());
  EXPECT_FALSE(recorder.wants_all());
  reader.Want(kTraceForLauncher);
  EXPECT_TRUE(recorder.wants_all());
  reader.Want(kTraceForProcess | kTraceCycles);
  reader.WantNoMore(kTraceForLauncher);
  EXPECT_EQ(recorder.wanted(), uint32_t{kTraceForProcess} | uint32_t{kTraceCycles});
}

TEST(RingTest, WithoutMemoryNothingIsRecorded) {
  Recorder recorder;
  EXPECT_FALSE(recorder.on());
  EXPECT_FALSE(recorder.wants_all());
  RingMemory memory(64);
  EXPECT_FALSE(Recorder(memory.span().first(100)).on());
  EXPECT_FALSE(Recorder(memory.span().first(TraceRing::BytesFor(63))).on());
  RingReader reader(memory.span().first(100));
  std::vector<TraceRecord> records;
  EXPECT_EQ(reader.Read(&records, 10), 0U);
  EXPECT_FALSE(reader.HasMore());
}

TEST(RingTest, ADamagedCountMisleadsNobody) {
  RingMemory memory(64);
  Recorder recorder(memory.span());
  RingReader reader(memory.span());
  for (uint64_t i = 1; i <= 10; ++i) recorder.Write(Event(i));
  std::vector<TraceRecord> records;
  reader.Read(&records, 100);
  TraceRing ring = TraceRing::In(memory.span());
  ring.header->written.store(3);  // backwards
  EXPECT_EQ(reader.Read(&records, 100), 0U);
  ring.header->written.store(UINT64_MAX - 5);
  records.clear();
  reader.Read(&records, 100);
  EXPECT_LE(records.size(), 64U);
}

}  // namespace
}  // namespace hvd
