// The ranks that wait for a generation, and those that are in one.
#include "launcher/generation/rank_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(RankSlots, NobodyIsAnywhereAtFirst) {
  const RankSlots slots(2);
  EXPECT_EQ(slots.size(), 2U);
  EXPECT_THAT(slots.All(), ElementsAre(0, 1));
  EXPECT_THAT(slots.Waiting(), IsEmpty());
  EXPECT_FALSE(slots.AllWaiting());
  EXPECT_FALSE(slots.in_use());
  EXPECT_EQ(slots.generation(0), 0U);
}

TEST(RankSlots, WhoWaitsEntersOrStopsWaiting) {
  RankSlots slots(2);
  slots.Wait(0);
  slots.Wait(1);
  EXPECT_TRUE(slots.AllWaiting());
  EXPECT_TRUE(slots.StopWaiting(0));
  EXPECT_FALSE(slots.StopWaiting(0));
  EXPECT_THAT(slots.Waiting(), ElementsAre(1));
  slots.Enter(1, 7, 0);
  EXPECT_THAT(slots.Waiting(), IsEmpty());
  EXPECT_TRUE(slots.in_use());
  EXPECT_EQ(slots.generation(1), 7U);
  EXPECT_THAT(slots.In(7), ElementsAre(1));
  EXPECT_THAT(slots.In(6), IsEmpty());
}

TEST(RankSlots, ASlotIsFoundByItsPlaceInTheGeneration) {
  RankSlots slots(3);
  slots.Enter(2, 4, 0);
  slots.Enter(0, 4, 1);
  EXPECT_EQ(slots.At(0, 4), 2U);
  EXPECT_EQ(slots.At(1, 4), 0U);
  EXPECT_EQ(slots.At(2, 4), std::nullopt);
  EXPECT_EQ(slots.At(0, 3), std::nullopt) << "it was in another one";
  slots.Leave(2, 0);
  EXPECT_EQ(slots.At(0, 4), std::nullopt);
}

TEST(RankSlots, CommitsAddUpOverGenerations) {
  RankSlots slots(1);
  slots.Enter(0, 1, 0);
  slots.Leave(0, 5);
  slots.Enter(0, 2, 0);
  slots.Leave(0, 2);
  EXPECT_EQ(slots.commits(0), 7U);
  EXPECT_FALSE(slots.in_use());
}

TEST(RankSlots, MoreSlotsComeBehindTheOthers) {
  RankSlots slots(1);
  slots.Wait(0);
  slots.Add(1);
  EXPECT_EQ(slots.size(), 2U);
  EXPECT_TRUE(slots.waiting(0));
  EXPECT_FALSE(slots.AllWaiting());
}

}  // namespace
}  // namespace hvd
