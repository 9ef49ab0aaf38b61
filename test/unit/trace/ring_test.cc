// The ring: what is written is read, in order; what is overwritten is counted; a live ring and a
// damaged one.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "runtime/trace/recorder.h"
#include "runtime/trace/ring_reader.h"
#include "test/unit/trace/ring_memory.h"

namespace hvd {
namespace {

TraceRecord Event(uint64_t number) {
  return {.stamp = number, .kind = TraceKind::kDone, .id = 1, .bytes = number * 3};
}

class RingTest : public testing::Test {
 protected:
  void WriteEvents(uint64_t last) {
    for (uint64_t i = 1; i <= last; ++i) recorder_.Write(Event(i));
  }

  RingMemory memory_{64};
  Recorder recorder_{memory_.span()};
  RingReader reader_{memory_.span()};
  std::vector<TraceRecord> records_;
};

TEST_F(RingTest, WhatIsWrittenIsReadOnceAndInOrder) {
  WriteEvents(10);
  EXPECT_TRUE(reader_.HasMore());
  EXPECT_EQ(reader_.Read(&records_, 7), 0U);
  EXPECT_EQ(records_.size(), 7U);
  EXPECT_EQ(reader_.Read(&records_, 100), 0U);
  ASSERT_EQ(records_.size(), 10U);
  for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(records_[i], Event(i + 1));
  EXPECT_FALSE(reader_.HasMore());
}

TEST_F(RingTest, WhatIsOverwrittenIsCounted) {
  WriteEvents(200);
  const uint64_t lost = reader_.Read(&records_, 1000);
  // The place of the oldest one may be written again at any moment.
  EXPECT_EQ(lost, 200U - 63U);
  ASSERT_EQ(records_.size(), 63U);
  EXPECT_EQ(records_.front(), Event(138));
  EXPECT_EQ(records_.back(), Event(200));
}

TEST_F(RingTest, ALiveRingIsReadWithoutTornRecords) {
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

TEST_F(RingTest, ANameIsToldAgainBeforeTheRingForgetsIt) {
  TraceName name;
  EXPECT_FALSE(recorder_.HasName(name));
  recorder_.WriteName(&name, "a name of more than twenty-four bytes");
  EXPECT_TRUE(recorder_.HasName(name));
  for (uint64_t i = 0; i < 31; ++i) recorder_.Write(Event(i));
  EXPECT_FALSE(recorder_.HasName(name));
  const uint32_t id = name.id;
  recorder_.WriteName(&name, "a name of more than twenty-four bytes");
  EXPECT_EQ(name.id, id);
  name.Change();
  EXPECT_FALSE(recorder_.HasName(name));
}

TEST_F(RingTest, ARecorderContinuesWhereTheLastOneStopped) {
  Recorder(memory_.span()).Write(Event(1));
  Recorder(memory_.span()).Write(Event(2));
  RingReader reader(memory_.span());
  std::vector<TraceRecord> records;
  reader.Read(&records, 10);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1], Event(2));
}

TEST_F(RingTest, AReaderAsksForMore) {
  EXPECT_FALSE(recorder_.wants_all());
  reader_.Want(kTraceForLauncher);
  EXPECT_TRUE(recorder_.wants_all());
  reader_.Want(kTraceForProcess | kTraceCycles);
  reader_.WantNoMore(kTraceForLauncher);
  EXPECT_EQ(recorder_.wanted(), uint32_t{kTraceForProcess} | uint32_t{kTraceCycles});
}

TEST_F(RingTest, WithoutMemoryNothingIsRecorded) {
  Recorder recorder;
  EXPECT_FALSE(recorder.on());
  EXPECT_FALSE(recorder.wants_all());
  EXPECT_FALSE(Recorder(memory_.span().first(100)).on());
  EXPECT_FALSE(Recorder(memory_.span().first(TraceRing::BytesFor(63))).on());
  RingReader reader(memory_.span().first(100));
  std::vector<TraceRecord> records;
  EXPECT_EQ(reader.Read(&records, 10), 0U);
  EXPECT_FALSE(reader.HasMore());
}

TEST_F(RingTest, ADamagedCountMisleadsNobody) {
  WriteEvents(10);
  reader_.Read(&records_, 100);
  TraceRing ring = TraceRing::In(memory_.span());
  ring.header->written.store(3);  // backwards
  EXPECT_EQ(reader_.Read(&records_, 100), 0U);
  ring.header->written.store(UINT64_MAX - 5);
  records_.clear();
  reader_.Read(&records_, 100);
  EXPECT_LE(records_.size(), 64U);
}

TEST(RingCountsTest, CountsAreReadWithoutRecords) {
  RingMemory memory(64);
  Recorder recorder(memory.span(), TraceClock::kSteadyNs);
  RingReader reader(memory.span());
  EXPECT_FALSE(recorder.wants_waits());
  reader.Want(kTraceCounts);
  EXPECT_TRUE(recorder.wants_waits());
  EXPECT_FALSE(recorder.wants_all());
  recorder.CountOperation(100);
  recorder.CountOperation(11);
  recorder.CountLast();
  recorder.CountStep();
  const RankCounts counts = reader.Counts(0);
  EXPECT_EQ(counts.operations, 2U);
  EXPECT_EQ(counts.bytes, 111U);
  EXPECT_EQ(counts.last, 1U);
  EXPECT_EQ(counts.steps, 1U);
  EXPECT_FALSE(counts.waiting);
  EXPECT_EQ(RingReader({}).Counts(0).operations, 0U);
}

TEST(RingCountsTest, AWaitCountsWhileItLasts) {
  RingMemory memory(64);
  Recorder recorder(memory.span(), TraceClock::kSteadyNs);
  const RingReader reader(memory.span());
  recorder.BeginWait();
  recorder.BeginWait();  // of another thread
  const uint64_t since = recorder.Now();
  EXPECT_TRUE(reader.Counts(since).waiting);
  EXPECT_GE(reader.Counts(since + 1'000'000).waited, 1'000'000U);
  recorder.EndWait();
  EXPECT_TRUE(reader.Counts(since).waiting);
  recorder.EndWait();
  EXPECT_FALSE(reader.Counts(since).waiting);
  const uint64_t waited = reader.Counts(since).waited;
  EXPECT_EQ(reader.Counts(since + 1'000'000).waited, waited);
}

}  // namespace
}  // namespace hvd
