#include "launcher/channels/nodes/node_numbers.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

constexpr TimePoint kStart = TimePoint(std::chrono::hours(1));
constexpr uint32_t kA = NodeIdOf(17), kB = NodeIdOf(3), kC = NodeIdOf(0xffff'ffff);

TEST(NodeNumbers, AreGivenInTheOrderInWhichMachinesAreMet) {
  NodeNumbers numbers;
  const std::vector<WantedNode> all = {{2, kStart}, {1, kStart}};
  EXPECT_EQ(numbers.Take(kA, all, kStart), 1u);
  EXPECT_EQ(numbers.Take(kB, all, kStart), 2u);
  EXPECT_EQ(numbers.Take(kC, all, kStart), std::nullopt) << "one more than there are nodes";
}

TEST(NodeNumbers, AMachineKeepsItsOwn) {
  NodeNumbers numbers;
  EXPECT_EQ(numbers.Take(kA, {{1, kStart}, {2, kStart}}, kStart), 1u);
  EXPECT_EQ(numbers.Take(kA, {{2, kStart}}, kStart + kNodeAbsence), 1u);
  EXPECT_EQ(numbers.Take(kA, {}, kStart), 1u);
}

TEST(NodeNumbers, ANumberIsTakenOverOnceItsMachineHasBeenAwayForLong) {
  NodeNumbers numbers;
  EXPECT_EQ(numbers.Take(kA, {{1, kStart}}, kStart), 1u);
  const std::vector<WantedNode> lost = {{1, kStart}};
  EXPECT_EQ(numbers.Take(kB, lost, kStart + kNodeAbsence - Duration(1)), std::nullopt);
  EXPECT_EQ(numbers.Take(kB, {{1, kStart}, {2, kStart}}, kStart + kNodeAbsence), 2u)
      << "one that nobody had comes first";
  EXPECT_EQ(numbers.Take(kC, lost, kStart + kNodeAbsence), 1u);
  EXPECT_EQ(numbers.Take(kA, lost, kStart + kNodeAbsence - Duration(1)), std::nullopt)
      << "the first one comes back too late";
}

TEST(NodeNumbers, OneOfAMachineWithARankIsNoOthers) {
  NodeNumbers numbers;
  EXPECT_EQ(numbers.Take(1, {{1, kStart}}, kStart), 1u);
  EXPECT_EQ(numbers.Take(kA, {{1, kStart}, {2, kStart}}, kStart), 2u);
  EXPECT_EQ(numbers.Take(2, {{2, kStart}}, kStart), std::nullopt) << "kA has it";
  EXPECT_EQ(numbers.Take(kB, {{1, kStart}}, kStart + kNodeAbsence), 1u) << "it was lost";
  EXPECT_EQ(numbers.Take(1, {{1, kStart}}, kStart), std::nullopt) << "and comes back too late";
  EXPECT_TRUE(numbers.IsTaken(1));
  EXPECT_FALSE(numbers.IsTaken(3));
}

TEST(NodeNumbers, AnIdIsNoNumber) {
  EXPECT_TRUE(IsNodeId(kB));
  EXPECT_FALSE(IsNodeId(100'000));
}

}  // namespace
}  // namespace hvd
