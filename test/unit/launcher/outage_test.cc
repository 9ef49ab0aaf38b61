// A connection that is lost: when it is tried again, for how long, and what the user hears.
#include "launcher/outage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "launcher/visit.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

constexpr TimePoint kStart{};
constexpr double kMiddle = 0.5;

TEST(Outage, IsTriedAtOnceAndThenAtGrowingIntervals) {
  Outage outage("cut", seconds(60), kStart);
  EXPECT_EQ(outage.due(), kStart);
  std::vector<int64_t> pauses_ms;
  TimePoint now = kStart;
  for (int i = 0; i < 6; ++i) {
    outage.OnTry(now);
    EXPECT_TRUE(outage.trying());
    EXPECT_EQ(outage.due(), std::min<TimePoint>(now + Outage::kTryLimit, kStart + seconds(60)));
    outage.OnFailure("no route", now, kMiddle);
    EXPECT_FALSE(outage.trying());
    pauses_ms.push_back(std::chrono::duration_cast<milliseconds>(outage.due() - now).count());
    now = outage.due();
  }
  EXPECT_THAT(pauses_ms, ElementsAre(500, 1000, 2000, 4000, 5000, 5000));
}

TEST(Outage, PausesDifferByAQuarterAtMost) {
  for (auto [chance, milliseconds_later] : {std::pair(0.0, 375), std::pair(1.0, 625)}) {
    Outage outage("cut", seconds(60), kStart);
    outage.OnTry(kStart);
    outage.OnFailure("", kStart, chance);
    EXPECT_EQ(outage.due(), kStart + milliseconds(milliseconds_later));
  }
}

TEST(Outage, EndsWithItsGraceWhateverIsUnderWay) {
  Outage outage("cut", seconds(3), kStart);
  outage.OnTry(kStart + seconds(2));
  EXPECT_EQ(outage.due(), kStart + seconds(3)) << "the try ends with it";
  EXPECT_FALSE(outage.over(kStart + milliseconds(2999)));
  EXPECT_TRUE(outage.over(kStart + seconds(3)));
  outage.OnFailure("", kStart + milliseconds(2900), kMiddle);
  EXPECT_EQ(outage.due(), kStart + seconds(3));
}

TEST(Outage, ManyFailuresDoNotOverflow) {
  Outage outage("cut", seconds(3600), kStart);
  for (int i = 0; i < 100; ++i) outage.OnFailure("", kStart, kMiddle);
  EXPECT_EQ(outage.due(), kStart + seconds(5));
}

TEST(Outage, TheFirstReasonIsNamedFirst) {
  Outage outage("its agent has been silent for 5 s", seconds(60), kStart);
  EXPECT_EQ(outage.LostReason(),
            "its agent has been silent for 5 s; it could not be reached again within 60 s");
  outage.OnFailure("no answer came", kStart, kMiddle);
  outage.OnFailure("", kStart, kMiddle);
  EXPECT_EQ(outage.LostReason(),
            "its agent has been silent for 5 s; it could not be reached again within 60 s (no "
            "answer came)");
}

TEST(Outage, IsSaidInOneLine) {
  EXPECT_EQ(AwayText("b", "cut", seconds(60)),
            "the connection to host b was lost (cut); trying again for 60 s");
  EXPECT_EQ(BackText("b", milliseconds(12'345)), "host b is back after 12 s");
  EXPECT_EQ(BackText("b", milliseconds(456)), "host b is back after 0.4 s");
  EXPECT_EQ(UntoldText("b", seconds(8)),
            "host b could not be told to end, since the connection to it is lost; its agent ends "
            "by itself within 8 s");
  EXPECT_EQ(UnclearedText("b", "no answer within 4 s"),
            "what is left of the job on host b could not be ended from here (no answer within 4 "
            "s); its agent ends it as soon as it notices, unless somebody has stopped the agent");
}

TEST(VisitCommand, IsOneSimpleCommandForAnyShell) {
  EXPECT_EQ(VisitCommand(Visit::kResume, {"/my tools/hvdrun", "a door"}, "12"),
            "exec '/my tools/hvdrun' agent --resume '12' 'a door'");
  EXPECT_EQ(VisitCommand(Visit::kClear, {"/h", ""}, "12"), "exec '/h' agent --clear '12'");
}

TEST(VisitCommand, V10_NobodyCanKnowTheNameOfADoorBeforeItIsThere) {
  const std::string one = MakeDoorAddress(), other = MakeDoorAddress();
  EXPECT_NE(one, other);
  EXPECT_EQ(one.size(), std::string("hvd-resume-").size() + 24);
}

}  // namespace
}  // namespace hvd
