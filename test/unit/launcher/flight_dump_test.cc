// The dumps of PyTorch's flight recorder (flight_dumps/make.py).
#include "launcher/stall/flight_dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "launcher/stall/verdict/flight_verdict.h"

namespace hvd {
namespace {

std::string Dump(const std::string& name) {
  std::ifstream file(std::string(HVD_FLIGHT_DUMPS) + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<FlightGroup> Groups(const std::string& name) {
  Result<std::vector<FlightGroup>> groups = ParseFlightDump(Dump(name));
  EXPECT_TRUE(groups.ok()) << name << ": " << groups.status().message();
  return groups.ok() ? *groups : std::vector<FlightGroup>{};
}

TEST(FlightDump, SaysWhatGlooHasRecorded) {
  const std::vector<FlightGroup> groups = Groups("gloo-0.pickle");
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].description, "default_pg");
  EXPECT_EQ(groups[0].last, 4U);
  ASSERT_EQ(groups[0].entries.size(), 4U);
  const FlightEntry& gathered = groups[0].entries[2];
  EXPECT_EQ(gathered.operation, "all_gather");
  EXPECT_EQ(gathered.tensors, "Float [5]");
  EXPECT_EQ(gathered.inputs, 5U);
  EXPECT_EQ(gathered.outputs, 10U);
  EXPECT_EQ(gathered.state, FlightState::kCompleted);
  EXPECT_EQ(groups[0].entries[3].number, 4U);
  EXPECT_EQ(groups[0].entries[3].state, FlightState::kScheduled) << "it waits there";
  EXPECT_EQ(groups[1].entries[0].operation, "barrier");
  EXPECT_EQ(groups[1].entries[0].tensors, "");
}

TEST(FlightDump, SaysWhatNcclHasRecorded) {
  const std::vector<FlightGroup> groups = Groups("nccl-0.pickle");
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_THAT(groups[0].ranks, testing::ElementsAre(0, 1, 2));
  ASSERT_EQ(groups[0].entries.size(), 4U);
  EXPECT_EQ(groups[0].entries[0].state, FlightState::kCompleted);
  EXPECT_EQ(groups[0].entries[3].state, FlightState::kStarted);
  EXPECT_EQ(groups[0].entries[3].operation, "_all_gather_base");
  EXPECT_EQ(groups[0].entries[3].tensors, "BFloat16 [512]");
}

TEST(FlightDump, AnyPartOfADumpIsNone) {
  const std::string whole = Dump("nccl-0.pickle");
  ASSERT_GT(whole.size(), 1000U);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(ParseFlightDump(std::string_view(whole).substr(0, size)).ok()) << size;
}

TEST(FlightDump, ItEndsThoughALittlePickleNamesMuch) {
  // Each of many entries is one dict, whose sizes are many times one list of many.
  std::string pickle =
      "\x80\x02}(\x8c\x07"
      "entries](}q\x01(\x8c\x0dprocess_group\x8c\x01x\x8c\x01y\x86"
      "\x8c\x0binput_sizes](](";
  for (int i = 0; i < 40'000; ++i) pickle += "K\x02";
  pickle += "eq\x02";
  for (int i = 0; i < 40'000; ++i) pickle += "h\x02";
  pickle += "eu";
  for (int i = 0; i < 40'000; ++i) pickle += "h\x01";
  pickle += "eu.";
  EXPECT_FALSE(ParseFlightDump(pickle).ok());
}

TEST(FlightDump, OfALongListItKeepsWhatHasNotEndedAndTheLast) {
  // 200 entries {"process_group": ("x", "y"), "collective_seq_id": i, "state": ...}
  std::string pickle =
      "\x80\x02}(\x8c\x07"
      "entries](";
  for (int i = 0; i < 200; ++i) {
    pickle +=
        "}(\x8c\x0dprocess_group\x8c\x01x\x8c\x01y\x86\x8c\x11"
        "collective_seq_idK";
    pickle += static_cast<char>(i);
    pickle += i < 100 ? "\x8c\x05state\x8c\x09"
                        "completedu"
                      : "\x8c\x05state\x8c\x09scheduledu";
  }
  pickle += "eu.";
  Result<std::vector<FlightGroup>> groups = ParseFlightDump(pickle);
  ASSERT_TRUE(groups.ok()) << groups.status().message();
  ASSERT_EQ(groups->size(), 1U);
  const std::vector<FlightEntry>& entries = (*groups)[0].entries;
  ASSERT_EQ(entries.size(), kMostFlightEntries);
  EXPECT_EQ((*groups)[0].last, 199U);
  EXPECT_EQ(entries.front().number, 92U);
  EXPECT_EQ(entries[8].number, 100U);
  EXPECT_EQ(entries.back().number, 199U);
}

TEST(FlightDump, OtherPicklesAreNone) {
  EXPECT_FALSE(ParseFlightDump("\x80\x02}.").ok());
  EXPECT_FALSE(ParseFlightDump("\x80\x02].").ok());
  EXPECT_FALSE(ParseFlightDump("{\"entries\": []}").ok())
      << "JSON, which PyTorch does not write to files";
}

// From the files to the sentence.
TEST(FlightDump, TheDumpsOfTwoRanksNameTheOneThatDidNotCome) {
  std::vector<FlightRecord> records{{0, 0, "", Groups("gloo-0.pickle")},
                                    {1, 1, "", Groups("gloo-1.pickle")}};
  EXPECT_EQ(ExplainFlight(records, 2),
            "  PyTorch's flight recorder: collective 4 of the default group, all_reduce of Float "
            "[1000], was enqueued by rank 0 and not by rank 1, whose last one is number 3, "
            "all_gather of Float [5].\n");
  records.clear();
  for (uint32_t rank = 0; rank < 3; ++rank)
    records.push_back({rank, rank, "", Groups("nccl-" + std::to_string(rank) + ".pickle")});
  EXPECT_EQ(ExplainFlight(records, 3),
            "  PyTorch's flight recorder: collective 4 of the default group, _all_gather_base of "
            "BFloat16 [512], was enqueued by ranks 0-1 and not by rank 2, whose last one is number "
            "3, all_reduce of BFloat16 [1024, 32].\n");
}

}  // namespace
}  // namespace hvd
