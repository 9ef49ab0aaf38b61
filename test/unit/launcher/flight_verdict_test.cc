// What PyTorch's flight recorders add to a verdict.
#include "launcher/stall/verdict/flight_verdict.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hvd {
namespace {

FlightEntry Enqueued(uint64_t number, const std::string& operation, uint64_t elements,
                     FlightState state = FlightState::kScheduled) {
  return {number,  0,        state,   operation, "Float [" + std::to_string(elements) + "]",
          "Float", elements, elements};
}
FlightEntry Over(uint64_t number, const std::string& operation, uint64_t elements) {
  return Enqueued(number, operation, elements, FlightState::kCompleted);
}

FlightRecord RecordOf(uint32_t rank, std::vector<FlightEntry> entries,
                      std::vector<uint32_t> members = {}, const std::string& name = "0",
                      const std::string& description = "default_pg") {
  const uint64_t last = entries.empty() ? 0 : entries.back().number;
  return {rank, rank, "", {{name, description, std::move(members), last, std::move(entries)}}};
}

const std::vector<FlightEntry> kBefore{Over(7, "all_reduce", 64)};
std::vector<FlightEntry> And(std::vector<FlightEntry> entries, const FlightEntry& next) {
  entries.push_back(next);
  return entries;
}

struct FlightRow {
  const char* name;
  std::vector<FlightRecord> records;
  const char* lines;  // without the introduction of each; nothing is said: ""
};

std::string Introduced(const std::string& line) {
  return line.empty() ? "" : "  PyTorch's flight recorder: " + line + "\n";
}

const FlightRow kFlightRows[] = {
    {"nothing was recorded", {}, ""},
    {"each one that was enqueued has ended", {RecordOf(0, kBefore), RecordOf(1, kBefore)}, ""},
    {"a rank is behind",
     {RecordOf(0, And(kBefore, Enqueued(8, "broadcast", 9))), RecordOf(1, kBefore),
      RecordOf(2, And(kBefore, Enqueued(8, "broadcast", 9)))},
     "collective 8 of the default group, broadcast of Float [9], was enqueued by ranks 0,2 and not "
     "by rank 1, whose last one is number 7, all_reduce of Float [64]."},
    {"ranks are behind at different ones",
     {RecordOf(0, And(kBefore, Enqueued(8, "broadcast", 9))), RecordOf(1, kBefore),
      RecordOf(2, {Over(6, "all_reduce", 64)})},
     "collective 8 of the default group, broadcast of Float [9], was enqueued by rank 0 and not by "
     "ranks 1-2."},
    {"a rank has none, and no group of its own",
     {RecordOf(0, {Enqueued(1, "all_reduce", 3)}), RecordOf(1, {}), {2, 2, "", {}}},
     "collective 1 of the default group, all_reduce of Float [3], was enqueued by rank 0 and not "
     "by ranks 1-2, which has enqueued none in it."},
    {"a rank has no dump",
     {RecordOf(0, {Enqueued(1, "all_reduce", 3)}), RecordOf(1, {}), {2, 2, "has written none", {}}},
     "collective 1 of the default group, all_reduce of Float [3], was enqueued by rank 0 and not "
     "by rank 1, which has enqueued none in it; there is no dump of rank 2."},
    {"another operation",
     {RecordOf(0, And(kBefore, Enqueued(8, "all_reduce", 9))),
      RecordOf(1, And(kBefore, Enqueued(8, "all_reduce", 9))),
      RecordOf(2, And(kBefore, Enqueued(8, "barrier", 1)))},
     "ranks have enqueued different operations as collective 8 of the default group: all_reduce of "
     "Float [9] on ranks 0-1, barrier of Float [1] on rank 2."},
    {"another shape, and a rank behind",
     {RecordOf(0, And(kBefore, Enqueued(8, "all_reduce", 9))),
      RecordOf(1, And(kBefore, Enqueued(8, "all_reduce", 10))), RecordOf(2, kBefore)},
     "ranks have enqueued different shapes as collective 8 of the default group: all_reduce of "
     "Float [9] on rank 0, all_reduce of Float [10] on rank 1; rank 2 none."},
    {"shapes that may differ",
     {RecordOf(0, {Enqueued(1, "all_to_all", 3)}), RecordOf(1, {Enqueued(1, "all_to_all", 4)}),
      RecordOf(2, {Enqueued(1, "all_to_all", 3)})},
     "collective 1 of the default group, all_to_all of Float [3], was enqueued by ranks 0-2, which "
     "are all."},
    {"it has started on some",
     {RecordOf(0, {Enqueued(1, "all_reduce", 3, FlightState::kStarted)}),
      RecordOf(1, {Enqueued(1, "all_reduce", 3)}),
      RecordOf(2, {Enqueued(1, "all_reduce", 3, FlightState::kStarted)})},
     "collective 1 of the default group, all_reduce of Float [3], was enqueued by ranks 0-2, which "
     "are all; it has started on ranks 0,2 and not on rank 1."},
    {"one has it behind it",
     {RecordOf(0, {Over(1, "broadcast", 3)}), RecordOf(1, {Enqueued(1, "broadcast", 3)}),
      RecordOf(2, {Enqueued(1, "broadcast", 3)})},
     "collective 1 of the default group, broadcast of Float [3], was enqueued by ranks 0-2, which "
     "are all."},
    {"members that the dump names",
     {RecordOf(0, {Enqueued(5, "all_reduce", 3)}, {0, 2}, "3", "undefined"),
      RecordOf(2, {Over(4, "all_reduce", 3)}, {0, 2}, "3", "undefined"),
      {1, 1, "", {}}},
     "collective 5 of group 3, all_reduce of Float [3], was enqueued by rank 0 and not by rank 2, "
     "whose last one is number 4, all_reduce of Float [3]."},
    {"of a described group",
     {RecordOf(0, {Enqueued(5, "all_reduce", 3)}, {0, 2}, "3", "mesh_tp")},
     "collective 5 of group mesh_tp, all_reduce of Float [3], was enqueued by rank 0; there is no "
     "dump of rank 2."},
};

TEST(FlightVerdict, Table) {
  for (const FlightRow& row : kFlightRows)
    EXPECT_EQ(ExplainFlight(row.records, 3), Introduced(row.lines)) << row.name;
}

TEST(FlightVerdict, EqualCountsInOtherShapesAreEqual) {
  FlightEntry flat = Enqueued(1, "all_reduce", 12), square = flat;
  square.tensors = "Float [4, 3]";
  const std::string lines = ExplainFlight({RecordOf(0, {flat}), RecordOf(1, {square})}, 2);
  EXPECT_EQ(lines.find("different"), lines.npos) << lines;
  square.type = "Half";
  const std::string types = ExplainFlight({RecordOf(0, {flat}), RecordOf(1, {square})}, 2);
  EXPECT_NE(types.find("different shapes"), types.npos) << types;
}

TEST(FlightVerdict, ThePartsOfAGatherMayDiffer) {
  FlightEntry small = Enqueued(1, "all_gather", 3), large = Enqueued(1, "all_gather", 5);
  small.outputs = large.outputs = 8;
  std::string lines = ExplainFlight({RecordOf(0, {small}), RecordOf(1, {large})}, 2);
  EXPECT_EQ(lines.find("different"), lines.npos) << lines;
  large.outputs = 9;
  lines = ExplainFlight({RecordOf(0, {small}), RecordOf(1, {large})}, 2);
  EXPECT_NE(lines.find("different shapes"), lines.npos) << lines;
}

TEST(FlightVerdict, MessagesThatHaveNotEndedAreNamed) {
  FlightEntry send = Enqueued(3, "send 0->1", 4);
  send.is_message = 1;
  FlightRecord rank = RecordOf(0, {Over(1, "all_reduce", 2), send});
  rank.groups[0].last = 1;
  EXPECT_EQ(ExplainFlight({rank, RecordOf(1, {Over(1, "all_reduce", 2)})}, 2),
            Introduced("messages in the default group that have not ended: send 0->1 of Float [4] "
                       "(number 3) on rank 0."));
}

TEST(FlightVerdict, GroupsOfOtherRanksMayHaveTheSameName) {
  const std::string lines =
      ExplainFlight({RecordOf(0, {Enqueued(1, "all_reduce", 3)}, {0, 1}, "1", ""),
                     RecordOf(1, {Enqueued(1, "all_reduce", 3)}, {0, 1}, "1", ""),
                     RecordOf(2, {Enqueued(1, "barrier", 3)}, {2, 3}, "1", ""),
                     RecordOf(3, {Enqueued(1, "barrier", 3)}, {2, 3}, "1", "")},
                    4);
  EXPECT_EQ(lines.find("different"), lines.npos) << lines;
}

TEST(FlightVerdict, WhatExplainsMostComesFirstAndOfManyGroupsFour) {
  FlightRecord first{0, 0, "", {}}, second{1, 1, "", {}};
  for (int group = 0; group < 6; ++group) {
    const std::string name = std::to_string(group);
    first.groups.push_back({name, "", {0, 1}, 2, {Enqueued(2, "all_reduce", 3)}});
    const uint64_t number = group == 5 ? 1 : 2;  // behind in the last group alone
    second.groups.push_back({name, "", {0, 1}, number, {Enqueued(number, "all_reduce", 3)}});
  }
  second.groups.back().entries[0].state = FlightState::kCompleted;
  const std::string lines = ExplainFlight({first, second}, 2);
  EXPECT_TRUE(lines.starts_with("  PyTorch's flight recorder: collective 2 of group 5, ")) << lines;
  EXPECT_NE(lines.find("and 2 more groups wait"), lines.npos) << lines;
}

}  // namespace
}  // namespace hvd
