#include "runtime/trace/tick_clock.h"

#include <gtest/gtest.h>

#include <vector>

namespace hvd {
namespace {

TEST(TickClockTest, TwoReadingsGiveTheRate) {
  TickClock clock;
  EXPECT_FALSE(clock.ToSteadyNs(5));
  clock.Add({1000, 5'000'000'000});
  clock.Add({1100, 5'000'000'100});  // too near for a rate
  EXPECT_FALSE(clock.ToSteadyNs(1000));
  clock.Add({1000 + 2'500'000'000, 6'000'000'000});
  EXPECT_EQ(*clock.ToSteadyNs(1000), 5'000'000'000);
  EXPECT_EQ(*clock.ToSteadyNs(1000 + 1'250'000'000), 5'500'000'000);
  EXPECT_EQ(*clock.ToSteadyNs(1000 + 5'000'000'000), 7'000'000'000);
  EXPECT_EQ(*clock.ToSteadyNs(0), 5'000'000'000 - 400);
}

TEST(TickClockTest, AnyTicksAreTaken) {
  TickClock clock;
  clock.Add({UINT64_MAX - 10, 1});
  clock.Add({5, 2});  // backwards: no reading
  EXPECT_FALSE(clock.ToSteadyNs(0));
  TickClock sound;
  sound.Add({0, 0});
  sound.Add({2'000'000, 1'000'000});
  for (uint64_t ticks : {uint64_t{0}, UINT64_MAX, uint64_t{1} << 63, (uint64_t{1} << 63) - 1})
    EXPECT_TRUE(sound.ToSteadyNs(ticks));
}

TEST(TickClockTest, StampsOfRecordsBecomeNanosecondsButForNames) {
  std::vector<TraceRecord> records(2);
  records[0].stamp = records[1].stamp = 4'000'000;
  records[0].kind = TraceKind::kName;  // its text lies where others have their stamp
  records[1].kind = TraceKind::kDone;
  TickClock clock;
  clock.Add({0, 0});
  clock.Add({2'000'000, 1'000'000});
  StampInSteadyNs(records, TraceClock::kSteadyNs, clock);
  EXPECT_EQ(records[1].stamp, 4'000'000U);
  StampInSteadyNs(records, TraceClock::kTsc, clock);
  EXPECT_EQ(records[0].stamp, 4'000'000U);
  EXPECT_EQ(records[1].stamp, 2'000'000U);
  StampInSteadyNs(records, TraceClock::kTsc, TickClock());
  EXPECT_EQ(records[1].stamp, 0U);
}

TEST(TickClockTest, TheProcessorsCounterAndTheClockAgree) {
  const TickReading first = ReadTickPair(), second = ReadTickPair();
  EXPECT_GE(second.ticks, first.ticks);
  EXPECT_GE(second.steady_ns, first.steady_ns);
}

TEST(TickClockTest, TicksAreDurations) {
  TickClock clock;
  EXPECT_EQ(clock.DurationNs(TraceClock::kSteadyNs, 5), 5);
  EXPECT_EQ(clock.DurationNs(TraceClock::kTsc, 5), 0);
  clock.Add({1000, 0});
  clock.Add({1000 + 20'000'000, 10'000'000});
  EXPECT_EQ(clock.DurationNs(TraceClock::kTsc, 2'000'000), 1'000'000);
}

}  // namespace
}  // namespace hvd
