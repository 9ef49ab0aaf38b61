#include "launcher/process/oom.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

bool Dying() { return true; }
bool Nobody() { return false; }

TEST(OomBaseline, ARanksOwnKillIsCountedBeforeOrAfterALook) {
  OomBaseline baseline(7);
  EXPECT_FALSE(baseline.CountKill(7)) << "somebody else sent the signal";
  EXPECT_TRUE(baseline.CountKill(8)) << "counted since the last look";
  baseline.Look(9, Nobody);
  EXPECT_TRUE(baseline.CountKill(9)) << "a look came between the kill and the end";
}

TEST(OomBaseline, ARankThatTakesSecondsToEndKeepsTheKillOpen) {
  OomBaseline baseline(0);
  for (int look = 0; look < 10; ++look) baseline.Look(1, Dying);
  EXPECT_TRUE(baseline.CountKill(1));
}

TEST(OomBaseline, AStrangersKillIsSettledWhenNoRankEnds) {
  OomBaseline baseline(0);
  baseline.Look(1, Nobody);
  baseline.Look(1, Nobody);
  EXPECT_FALSE(baseline.CountKill(1));
  EXPECT_TRUE(baseline.CountKill(2)) << "a rank's own is told still";
}

TEST(OomBaseline, OneKillEndsOneRank) {
  OomBaseline baseline(0);
  EXPECT_TRUE(baseline.CountKill(2));
  EXPECT_TRUE(baseline.CountKill(2));
  EXPECT_FALSE(baseline.CountKill(2));
}

TEST(OomBaseline, NobodyIsAskedWhenNothingHappened) {
  OomBaseline baseline(3);
  bool asked = false;
  baseline.Look(3, [&] { return asked = true; });
  EXPECT_FALSE(asked);
}

}  // namespace
}  // namespace hvd
