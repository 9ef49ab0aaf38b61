#include "timeline/timeline_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "test/unit/timeline/ring_memory.h"
#include "timeline/recorder.h"
#include "timeline/ring_reader.h"

namespace hvd {
namespace {

using Json = nlohmann::json;

class TimelineWriterTest : public testing::Test {
 protected:
  TimelineWriterTest() {
    std::string name = testing::TempDir() + "timelineXXXXXX";
    folder_ = ::mkdtemp(name.data());
    path_ = folder_ + "/out.json";
  }
  ~TimelineWriterTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<TimelineWriter> Open(uint64_t most_bytes = 0) {
    auto writer = TimelineWriter::Create({path_, 1000, 77, most_bytes});
    EXPECT_TRUE(writer.ok()) << writer.status().message();
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
    recorder.Tell(&known, name);
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

  std::string folder_, path_;
};

TEST_F(TimelineWriterTest, HasWhatToolsForHorovodLookFor) {
  auto writer = Open();
  writer->BeginRank(0, "vm", 1, 1500);
  writer->BeginRank(1, "vm", 1, 1500);
  const std::string name = "allreduce.\"a\"\n\xf0\x9f\x94\xa5";
  writer->Take(0, Allreduce(name, 0, 2000), 0);
  writer->Take(1, Allreduce(name, 0, 2040), 0);
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
    writer->Take(0, Allreduce("x", i, 2000 + i * 100), 0);
    said += writer->Flush().ok() ? 0 : 1;
  }
  EXPECT_EQ(said, 1U);
  writer->Take(0, {}, 5);
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

}  // namespace
}  // namespace hvd
