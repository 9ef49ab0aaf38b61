#include "runtime/trace/last_arrivals.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

TEST(LastArrivalsTest, TheLastRankIsNamedWithItsLateness) {
  LastArrivals arrivals;
  EXPECT_FALSE(arrivals.Note({0, "x", 0, 3, 100}));
  EXPECT_FALSE(arrivals.Note({2, "x", 0, 3, 500}));
  const auto last = arrivals.Note({1, "x", 0, 3, 130});  // told late, but it came second
  ASSERT_TRUE(last);
  EXPECT_EQ(last->rank, 2U);
  EXPECT_EQ(last->ns, 500);
  EXPECT_EQ(last->late_ns, 370);
  EXPECT_EQ(last->first_waited_ns, 400);
}

TEST(LastArrivalsTest, RoundsAreKeptApart) {
  LastArrivals arrivals;
  EXPECT_FALSE(arrivals.Note({0, "x", 0, 2, 1}));
  EXPECT_FALSE(arrivals.Note({0, "x", 1, 2, 2}));
  EXPECT_FALSE(arrivals.Note({0, "y", 0, 2, 3}));
  const auto last = arrivals.Note({1, "x", 1, 2, 9});
  ASSERT_TRUE(last);
  EXPECT_EQ(last->late_ns, 7);
}

// Ranks begin one after the other; the first ones have submitted before the last one is known.
TEST(LastArrivalsTest, ARankThatBeginsLaterCompletesTheRound) {
  LastArrivals arrivals;
  arrivals.BeginRank(0, 1);
  EXPECT_FALSE(arrivals.Note({0, "x", 0, 2, 100}));
  arrivals.BeginRank(1, 1);
  const auto last = arrivals.Note({1, "x", 0, 2, 150});
  ASSERT_TRUE(last);
  EXPECT_EQ(last->late_ns, 50);
}

TEST(LastArrivalsTest, AnUnfinishedRoundIsNotThatOfTheNextGeneration) {
  LastArrivals arrivals;
  arrivals.BeginRank(0, 1);
  arrivals.BeginRank(1, 1);
  EXPECT_FALSE(arrivals.Note({0, "x", 0, 2, 100}));
  arrivals.BeginRank(1, 2);
  EXPECT_FALSE(arrivals.Note({1, "x", 0, 2, 900}));
  arrivals.BeginRank(0, 2);
  const auto last = arrivals.Note({0, "x", 0, 2, 930});
  ASSERT_TRUE(last);
  EXPECT_EQ(last->late_ns, 30);
}

TEST(LastArrivalsTest, ProcessSetsOfOneSizeAreKeptApart) {
  LastArrivals arrivals;
  EXPECT_FALSE(arrivals.Note({0, "x", 0, 2, 100, 1}));
  EXPECT_FALSE(arrivals.Note({2, "x", 0, 2, 110, 2}));
  const auto last = arrivals.Note({1, "x", 0, 2, 130, 1});
  ASSERT_TRUE(last);
  EXPECT_EQ(last->late_ns, 30);
}

TEST(LastArrivalsTest, ARankAloneIsNeverLast) {
  LastArrivals arrivals;
  EXPECT_FALSE(arrivals.Note({0, "x", 0, 1, 1}));
}

TEST(LastArrivalsTest, RoundsThatNeverEndDoNotFillTheMemory) {
  LastArrivals arrivals;
  for (uint32_t round = 0; round < 20000; ++round) arrivals.Note({0, "x", round, 2, round});
  EXPECT_FALSE(arrivals.Note({1, "x", 5, 2, 7}));  // forgotten
  EXPECT_TRUE(arrivals.Note({1, "x", 19999, 2, 7}));
}

}  // namespace
}  // namespace hvd
