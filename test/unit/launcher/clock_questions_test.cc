#include <gtest/gtest.h>

#include "launcher/doctor/examined_hosts.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int64_t kWallMinusSteady = 1'000'000;

int64_t WallAt(TimePoint time) { return time.time_since_epoch().count() + kWallMinusSteady; }

TEST(ClockQuestions, TheQuickestAnswerCounts) {
  ClockQuestions clock(kWallMinusSteady);
  TimePoint now{seconds(10)};
  for (Duration route : {milliseconds(40), milliseconds(2), milliseconds(30)}) {
    const AskTime question = clock.Ask(now);
    // The clock there is 7 ms ahead, and the answer is given a quarter of the way too late.
    const int64_t wall = WallAt(now + route * 3 / 4 + milliseconds(7));
    now += route;
    EXPECT_TRUE(clock.Receive(TimeReply{question.number, wall}, now));
  }
  EXPECT_EQ(clock.skew()->uncertainty, milliseconds(1));
  EXPECT_EQ(clock.skew()->skew, milliseconds(7) + std::chrono::microseconds(500));
  EXPECT_FALSE(clock.over());
}

TEST(ClockQuestions, AnswersThatNobodyAskedForAreRefused) {
  ClockQuestions clock(kWallMinusSteady);
  const TimePoint now{seconds(10)};
  EXPECT_FALSE(clock.Receive(TimeReply{0, WallAt(now)}, now)) << "nothing was asked";
  const AskTime question = clock.Ask(now);
  EXPECT_FALSE(clock.Receive(TimeReply{question.number + 1, WallAt(now)}, now));
  EXPECT_TRUE(clock.Receive(TimeReply{question.number, WallAt(now)}, now));
  EXPECT_FALSE(clock.Receive(TimeReply{question.number, WallAt(now)}, now)) << "once more";
}

TEST(ClockQuestions, EndAfterTheLastAnswer) {
  ClockQuestions clock(kWallMinusSteady);
  const TimePoint now{seconds(10)};
  for (uint32_t i = 0; i < ClockQuestions::kQuestions; ++i) {
    EXPECT_FALSE(clock.over());
    const AskTime question = clock.Ask(now);
    EXPECT_EQ(question.number, i);
    clock.Receive(TimeReply{question.number, WallAt(now)}, now);
  }
  EXPECT_TRUE(clock.over());
}

}  // namespace
}  // namespace hvd
