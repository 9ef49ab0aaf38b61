#include "runtime/backends/cuda/order/turn_cells.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <thread>
#include <vector>

namespace hvd {
namespace {

TEST(TurnCells, AreTakenAllAtOnce) {
  std::array<TurnCell, 3> cells{};
  std::array<uint64_t, 2> turns{};
  const std::array<TurnCell*, 2> first = {&cells[0], &cells[1]}, second = {&cells[1], &cells[2]};
  EXPECT_TRUE(AcquireTurns(first, turns));
  EXPECT_EQ(turns, (std::array<uint64_t, 2>{1, 1}));
  EXPECT_TRUE(AcquireTurns(second, turns));
  EXPECT_EQ(turns, (std::array<uint64_t, 2>{2, 1}));
  EXPECT_TRUE(AcquireTurns(first, turns));
  EXPECT_EQ(turns, (std::array<uint64_t, 2>{2, 3}));
}

// Also of a rank that has died with it.
TEST(TurnCells, NothingIsTakenWhileSomebodyHoldsOne) {
  std::array<TurnCell, 3> cells{};
  cells[2].taken = 5 | TurnCell::kHeld;
  std::array<uint64_t, 3> turns{};
  const std::array<TurnCell*, 3> all = {&cells[0], &cells[1], &cells[2]};
  EXPECT_FALSE(AcquireTurns(all, turns));
  EXPECT_EQ(cells[0].taken, 0U);
  EXPECT_EQ(cells[1].taken, 0U);
  EXPECT_EQ(cells[2].taken, 5 | TurnCell::kHeld);
  cells[2].taken = 5;
  EXPECT_TRUE(AcquireTurns(all, turns));
  EXPECT_EQ(turns, (std::array<uint64_t, 3>{1, 1, 6}));
}

// Leaders of sets that share ranks, each in a thread of its own: no rank misses a turn or has one
// twice, and two ranks that share two batches have them in one order.
TEST(TurnCells, AreInOneOrderForAllThatShareThem) {
  constexpr size_t kBatches = 300;
  const std::vector<std::vector<size_t>> sets = {{0, 1, 2, 3}, {0, 1}, {1, 2, 3}, {0, 3}};
  std::array<TurnCell, 4> cells{};
  // By batch: the turn of each member.
  std::vector<std::vector<std::map<size_t, uint64_t>>> taken(sets.size());
  std::vector<std::thread> leaders;
  for (size_t s = 0; s < sets.size(); ++s) {
    leaders.emplace_back([&, s] {
      std::vector<TurnCell*> members;
      for (size_t rank : sets[s]) members.push_back(&cells[rank]);
      std::vector<uint64_t> turns(members.size());
      while (taken[s].size() < kBatches) {
        if (!AcquireTurns(members, turns)) {
          std::this_thread::yield();
          continue;
        }
        auto& batch = taken[s].emplace_back();
        for (size_t m = 0; m < turns.size(); ++m) batch[sets[s][m]] = turns[m];
      }
    });
  }
  for (std::thread& leader : leaders) leader.join();
  std::vector<std::map<size_t, uint64_t>> batches;
  for (const auto& of_set : taken) batches.insert(batches.end(), of_set.begin(), of_set.end());
  for (size_t rank = 0; rank < cells.size(); ++rank) {
    std::set<uint64_t> turns;
    for (const auto& batch : batches) {
      if (batch.contains(rank)) {
        EXPECT_TRUE(turns.insert(batch.at(rank)).second);
      }
    }
    EXPECT_EQ(*turns.begin(), 1U);
    EXPECT_EQ(*turns.rbegin(), turns.size());
    EXPECT_EQ(cells[rank].taken, turns.size());
  }
  for (const auto& a : batches) {
    for (const auto& b : batches) {
      std::set<bool> before;
      for (const auto& [rank, turn] : a) {
        if (&a != &b && b.contains(rank)) before.insert(turn < b.at(rank));
      }
      ASSERT_LE(before.size(), 1U);
    }
  }
}

}  // namespace
}  // namespace hvd
