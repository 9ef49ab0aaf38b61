// A connection that is lost: when it is tried again, for how long, and what the user hears.
#include "launcher/driver/agents/reconnect_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "launcher/agent/resume_listener.h"
#include "launcher/channels/bundle/side_command.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

constexpr TimePoint kStart{};
constexpr double kMiddle = 0.5;

TEST(ReconnectPolicy, IsTriedAtOnceAndThenAtGrowingIntervals) {
  ReconnectPolicy reconnect("cut", seconds(60), kStart);
  EXPECT_EQ(reconnect.due(), kStart);
  std::vector<int64_t> pauses_ms;
  TimePoint now = kStart;
  for (int i = 0; i < 6; ++i) {
    reconnect.OnTry(now);
    EXPECT_TRUE(reconnect.trying());
    EXPECT_EQ(reconnect.due(),
              std::min<TimePoint>(now + ReconnectPolicy::kTryLimit, kStart + seconds(60)));
    reconnect.OnFailure("no route", now, kMiddle);
    EXPECT_FALSE(reconnect.trying());
    pauses_ms.push_back(std::chrono::duration_cast<milliseconds>(reconnect.due() - now).count());
    now = reconnect.due();
  }
  EXPECT_THAT(pauses_ms, ElementsAre(500, 1000, 2000, 4000, 5000, 5000));
}

TEST(ReconnectPolicy, PausesDifferByAQuarterAtMost) {
  for (auto [chance, milliseconds_later] : {std::pair(0.0, 375), std::pair(1.0, 625)}) {
    ReconnectPolicy reconnect("cut", seconds(60), kStart);
    reconnect.OnTry(kStart);
    reconnect.OnFailure("", kStart, chance);
    EXPECT_EQ(reconnect.due(), kStart + milliseconds(milliseconds_later));
  }
}

TEST(ReconnectPolicy, EndsWithItsGraceWhateverIsInFlight) {
  ReconnectPolicy reconnect("cut", seconds(3), kStart);
  reconnect.OnTry(kStart + seconds(2));
  EXPECT_EQ(reconnect.due(), kStart + seconds(3)) << "the try ends with it";
  EXPECT_FALSE(reconnect.over(kStart + milliseconds(2999)));
  EXPECT_TRUE(reconnect.over(kStart + seconds(3)));
  reconnect.OnFailure("", kStart + milliseconds(2900), kMiddle);
  EXPECT_EQ(reconnect.due(), kStart + seconds(3));
}

TEST(ReconnectPolicy, ManyFailuresDoNotOverflow) {
  ReconnectPolicy reconnect("cut", seconds(3600), kStart);
  for (int i = 0; i < 100; ++i) reconnect.OnFailure("", kStart, kMiddle);
  EXPECT_EQ(reconnect.due(), kStart + seconds(5));
}

TEST(ReconnectPolicy, TheFirstReasonIsNamedFirst) {
  ReconnectPolicy reconnect("its agent has been silent for 5 s", seconds(60), kStart);
  EXPECT_EQ(reconnect.LostReason(),
            "its agent has been silent for 5 s; it could not be reached again within 60 s");
  reconnect.OnFailure("no answer came", kStart, kMiddle);
  reconnect.OnFailure("", kStart, kMiddle);
  EXPECT_EQ(reconnect.LostReason(),
            "its agent has been silent for 5 s; it could not be reached again within 60 s (no "
            "answer came)");
}

TEST(ReconnectPolicy, IsSaidInOneLine) {
  EXPECT_EQ(AwayText("b", "cut", seconds(60)),
            "the connection to host b was lost (cut); trying again for 60 s");
  EXPECT_EQ(BackText("b", milliseconds(12'345)), "host b is back after 12 s");
  EXPECT_EQ(BackText("b", milliseconds(456)), "host b is back after 0.4 s");
  EXPECT_EQ(UnreachedText("b", seconds(8)),
            "host b could not be told to end, since the connection to it is lost; its agent ends "
            "by itself within 8 s");
  EXPECT_EQ(UnclearedText("b", "no answer within 4 s"),
            "what is left of the job on host b could not be ended from here (no answer within 4 "
            "s); its agent ends it as soon as it notices, unless somebody has stopped the agent");
}

TEST(SideCommandLine, IsOneSimpleCommandForAnyShell) {
  EXPECT_EQ(SideCommandLine(SideCommand::kResume, {"/my tools/hvdrun", "a listener"}, "12"),
            "exec '/my tools/hvdrun' agent --resume '12' 'a listener'");
  EXPECT_EQ(SideCommandLine(SideCommand::kClear, {"/h", ""}, "12"), "exec '/h' agent --clear '12'");
}

TEST(SideCommandLine, TheNameOfAListenerCannotBeKnownBeforeItIsThere) {
  const std::string one = MakeListenerAddress(), other = MakeListenerAddress();
  EXPECT_NE(one, other);
  EXPECT_EQ(one.size(), std::string("hvd-resume-").size() + 24);
}

}  // namespace
}  // namespace hvd
