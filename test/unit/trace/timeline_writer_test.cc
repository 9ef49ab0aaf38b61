#include "runtime/trace/timeline_writer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/trace/recorder.h"
#include "runtime/trace/ring_reader.h"
#include "test/fakes/temporary_folder.h"
#include "test/unit/trace/ring_memory.h"

namespace hvd {
namespace {

using Json = nlohmann::json;

class TimelineWriterTest : public TemporaryFolderTest {
 protected:
  std::unique_ptr<TimelineWriter> Open(uint64_t most_bytes = 0) {
    auto writer = TimelineWriter::Create({path_, 1000, 77, most_bytes});
    EXPECT_TRUE(writer.ok()) << writer.status().message();
    return std::move(*writer);
  }
  // Of two ranks.
  std::unique_ptr<TimelineWriter> OpenForFiveSteps(bool keep_last) {
    TimelineOptions options{path_, 1000, 77};
    options.keep_last = keep_last;
    options.most_steps = 5;
    auto writer = TimelineWriter::Create(options);
    EXPECT_TRUE(writer.ok()) << writer.status().message();
    for (uint32_t rank = 0; rank < 2; ++rank) (*writer)->BeginRank(rank, "vm", 1, 1500);
    return std::move(*writer);
  }
  Json Read() const {
    std::ifstream in(path_);
    return Json::parse(in);
  }
  static size_t Count(const Json& all, const std::string& name) {
    size_t count = 0;
    for (const Json& event : all) count += event.value("name", "") == name;
    return count;
  }
  // One allreduce of a rank.
  static std::vector<TraceRecord> Allreduce(const std::string& name, uint32_t round,
                                            uint64_t submitted) {
    RingMemory memory(256);
    Recorder recorder(memory.span());
    TraceName known;
    recorder.WriteName(&known, name);
    TraceRecord record{.stamp = submitted, .kind = TraceKind::kSubmit, .id = known.id};
    record.rank = 2;
    record.status = round;
    recorder.Write(record);
    recorder.Write({.stamp = submitted + 50, .kind = TraceKind::kStart, .id = known.id});
    recorder.Write({.stamp = submitted + 90, .kind = TraceKind::kDone, .id = known.id, .bytes = 4});
    std::vector<TraceRecord> records;
    RingReader(memory.span()).Read(&records, 1000);
    return records;
  }
};

TEST_F(TimelineWriterTest, HasWhatToolsForHorovodLookFor) {
  auto writer = Open();
  writer->BeginRank(0, "vm", 1, 1500);
  writer->BeginRank(1, "vm", 1, 1500);
  const std::string name = "allreduce.\"a\"\n\xf0\x9f\x94\xa5";
  writer->Add(0, Allreduce(name, 0, 2000), 0);
  writer->Add(1, Allreduce(name, 0, 2040), 0);
  ASSERT_TRUE(writer->Flush().ok());
  const Json all = Read();
  EXPECT_EQ(all[0]["name"], "process_name");
  EXPECT_EQ(all[0]["args"]["start_time_since_epoch_in_micros"], 77);
  EXPECT_EQ(all[1]["name"], "process_sort_index");
  EXPECT_EQ(Count(all, "NEGOTIATE_ALLREDUCE"), 2U);
  EXPECT_EQ(Count(all, "ALLREDUCE"), 2U);
  Json row, last;
  for (const Json& event : all) {
    if (event.value("name", "") == "thread_name" && event["tid"] == 1) row = event;
    if (event.value("name", "") == "LAST_TO_ARRIVE") last = event;
  }
  EXPECT_EQ(row["args"]["name"], name);
  EXPECT_EQ(last["args"]["rank"], 1);
  EXPECT_EQ(last["args"]["late_ns"], 40);
  EXPECT_EQ(last["ts"], 1.040);
  writer->Finish();
  EXPECT_EQ(Read().back()["name"], "events_lost");
}

TEST_F(TimelineWriterTest, WhatIsNotWrittenIsCountedAndSaidOnce) {
  auto writer = Open(300000);
  size_t said = 0;
  for (uint32_t i = 0; i < 4000; ++i) {
    writer->Add(0, Allreduce("x", i, 2000 + i * 100), 0);
    said += writer->Flush().ok() ? 0 : 1;
  }
  EXPECT_EQ(said, 1U);
  writer->Add(0, {}, 5);
  writer->Finish();
  const Json end = Read().back();
  EXPECT_GT(end["args"]["not_written"], 1000);
  EXPECT_EQ(end["args"]["overwritten"], 5);
}

TEST_F(TimelineWriterTest, TheUncertaintyOfAClockIsInTheFile) {
  auto writer = Open();
  writer->NoteClock(2, "far", -5, 120);
  writer->Finish();
  const Json all = Read();
  bool found = false;
  for (const Json& event : all) {
    if (event["name"] != "clock") continue;
    found = true;
    EXPECT_EQ(event["pid"], 2);
    EXPECT_EQ(event["args"]["uncertainty_ns"], 120);
  }
  EXPECT_TRUE(found);
}

TEST_F(TimelineWriterTest, KeepsTheLastEventsInTwoFiles) {
  constexpr uint64_t kMost = 1 << 20;
  TimelineOptions options{path_, 1000, 77, kMost};
  options.keep_last = true;
  auto opened = TimelineWriter::Create(options);
  ASSERT_TRUE(opened.ok());
  TimelineWriter& writer = **opened;
  writer.BeginRank(0, "vm", 1, 1500);
  constexpr uint32_t kRounds = 6000;
  for (uint32_t round = 0; round < kRounds; ++round)
    writer.Add(0, Allreduce("grad", round, 2000 + round * 100), 0);
  ASSERT_TRUE(writer.Flush().ok());
  writer.Finish();
  EXPECT_LE(std::filesystem::file_size(path_), kMost / 2);
  EXPECT_LE(std::filesystem::file_size(path_ + ".1"), kMost / 2);
  const Json last = Read();
  std::ifstream in(path_ + ".1");
  const Json before = Json::parse(in);
  EXPECT_EQ(Count(last, "process_name"), 2U);  // of the file, and of the rank
  EXPECT_GT(Count(before, "ALLREDUCE"), 1000U);
  EXPECT_GT(Count(last, "ALLREDUCE"), 0U);
  EXPECT_LT(Count(last, "ALLREDUCE") + Count(before, "ALLREDUCE"), kRounds);
  EXPECT_EQ(last.back()["args"]["not_written"], 0);
  double end = 0;
  for (const Json& event : last) end = std::max(end, event.value("ts", 0.0));
  EXPECT_DOUBLE_EQ(end, (1000 + (kRounds - 1) * 100 + 90) / 1000.0);
  int open = 0;
  for (const Json& event : last) {
    open += event["ph"] == "B" ? 1 : event["ph"] == "E" ? -1 : 0;
    EXPECT_GE(open, 0);
  }
}

TEST_F(TimelineWriterTest, TheFirstStepsAreWrittenAndNothingAfterThem) {
  const auto opened = OpenForFiveSteps(/*keep_last=*/false);
  TimelineWriter& writer = *opened;
  for (uint32_t round = 0; round < 20; ++round) {
    for (uint32_t rank = 0; rank < 2; ++rank)
      writer.Add(rank, Allreduce("grad", round, 2000 + round * 100), 0);
  }
  ASSERT_TRUE(writer.Flush().ok());
  writer.Finish();
  const Json all = Read();
  EXPECT_EQ(Count(all, "ALLREDUCE"), 10U);
  EXPECT_EQ(Count(all, "LAST_TO_ARRIVE"), 5U);
  EXPECT_GT(all.back()["args"]["not_written"], 0);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".1"));
}

TEST_F(TimelineWriterTest, TheLastStepsAreKeptInTwoFiles) {
  const auto opened = OpenForFiveSteps(/*keep_last=*/true);
  TimelineWriter& writer = *opened;
  constexpr uint32_t kRounds = 33;
  for (uint32_t round = 0; round < kRounds; ++round) {
    for (uint32_t rank = 0; rank < 2; ++rank)
      writer.Add(rank, Allreduce("grad", round, 2000 + round * 100), 0);
    ASSERT_TRUE(writer.Flush().ok());
  }
  writer.Finish();
  const Json last = Read();
  std::ifstream in(path_ + ".1");
  const Json before = Json::parse(in);
  EXPECT_EQ(Count(before, "ALLREDUCE"), 10U);
  EXPECT_EQ(Count(last, "ALLREDUCE"), 2 * (kRounds % 5));
  double end = 0;
  for (const Json& event : last) end = std::max(end, event.value("ts", 0.0));
  EXPECT_DOUBLE_EQ(end, (1000 + (kRounds - 1) * 100 + 90) / 1000.0);
}

// One rank is gone; the files stay small all the same.
TEST_F(TimelineWriterTest, ARankThatComesNoMoreKeepsNoStepsOfTheOthers) {
  const auto opened = OpenForFiveSteps(/*keep_last=*/true);
  TimelineWriter& writer = *opened;
  for (uint32_t round = 0; round < 33; ++round)
    writer.Add(0, Allreduce("grad", round, 2000 + round * 1'000'000'000UL), 0);
  writer.Finish();
  std::ifstream in(path_ + ".1");
  EXPECT_EQ(Count(Json::parse(in), "ALLREDUCE"), 5U);
  EXPECT_LT(Count(Read(), "ALLREDUCE"), 5U);
}

// Records come rank by rank, each with many steps at once.
TEST_F(TimelineWriterTest, ARankIsNotBehindBecauseItsRecordsComeLater) {
  const auto opened = OpenForFiveSteps(/*keep_last=*/true);
  TimelineWriter& writer = *opened;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    for (uint32_t round = 0; round < 30; ++round)
      writer.Add(rank, Allreduce("grad", round, 2000 + round * 100), 0);
  }
  writer.Finish();
  std::ifstream in(path_ + ".1");
  size_t of_rank[2] = {0, 0};
  for (const Json& all : {Json::parse(in), Read()}) {
    for (const Json& event : all)
      if (event.value("name", "") == "ALLREDUCE") ++of_rank[event["pid"].get<size_t>()];
  }
  EXPECT_GE(of_rank[0], 5U);
  EXPECT_GE(of_rank[1], 5U);
}

}  // namespace
}  // namespace hvd
