// Clocks of hosts that booted at different times, and which of several departures is named.
#include "launcher/job/report/first_cause.h"

#include <gtest/gtest.h>

#include <limits>

namespace hvd {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TimePoint Ours(Duration since_boot) { return TimePoint(since_boot); }
int64_t Nanoseconds(Duration d) { return d.count(); }

// A question at `at`, there and back `round_trip`, answered half way by a clock that is `ahead` of
// ours.
ClockReading Reading(Duration at, Duration round_trip, Duration ahead) {
  return {Ours(at), Ours(at + round_trip), Nanoseconds(at + round_trip / 2 + ahead)};
}

HostClock ClockAhead(Duration ahead, Duration round_trip = microseconds(200)) {
  HostClock clock;
  clock.Add(Reading(seconds(100), round_trip, ahead));
  return clock;
}

TEST(HostClock, NothingIsKnownBeforeTheFirstReading) {
  EXPECT_FALSE(HostClock().Convert(5));
  EXPECT_EQ(HostClock::Ours().Convert(5)->at, Ours(Duration(5)));
  EXPECT_EQ(HostClock::Ours().Convert(5)->uncertainty, Duration::zero());
}

TEST(HostClock, AStampIsConvertedWithHalfTheRoundTripAsUncertainty) {
  for (Duration ahead : {Duration(seconds(1'000'000)), Duration(seconds(-90)), Duration::zero()}) {
    const HostClock clock = ClockAhead(ahead, milliseconds(4));
    const auto moment = clock.Convert(Nanoseconds(seconds(101) + ahead));
    ASSERT_TRUE(moment);
    EXPECT_EQ(moment->at, Ours(seconds(101)));
    EXPECT_GE(moment->uncertainty, milliseconds(2));
    EXPECT_LT(moment->uncertainty, milliseconds(3)) << "with what the clocks drift in a second";
  }
}

TEST(HostClock, TheShortestRoundTripCountsUntilItIsOld) {
  HostClock clock = ClockAhead(seconds(50), microseconds(100));
  clock.Add(Reading(seconds(101), milliseconds(80), seconds(50)));  // the host was busy
  EXPECT_LT(clock.Convert(Nanoseconds(seconds(151)))->uncertainty, milliseconds(1));
  clock.Add(Reading(seconds(3700), milliseconds(80), seconds(50)));
  const Duration uncertainty = clock.Convert(Nanoseconds(seconds(3750)))->uncertainty;
  EXPECT_GE(uncertainty, milliseconds(40)) << "the short one is an hour old";
  EXPECT_LT(uncertainty, milliseconds(41));
}

TEST(HostClock, AQuestionThatWasAwayForLongDoesNoHarm) {
  HostClock clock = ClockAhead(seconds(50));
  clock.Add({Ours(seconds(102)), Ours(seconds(130)), Nanoseconds(seconds(179))});
  const auto moment = clock.Convert(Nanoseconds(seconds(152)));
  EXPECT_EQ(moment->at, Ours(seconds(102)));
  EXPECT_LT(moment->uncertainty, milliseconds(2));
}

TEST(HostClock, AHostThatWasSuspendedIsReadAnew) {
  HostClock clock = ClockAhead(seconds(50));
  clock.Add(Reading(seconds(110), milliseconds(1), seconds(20)));  // half a minute is missing
  EXPECT_EQ(clock.Convert(Nanoseconds(seconds(131)))->at, Ours(seconds(111)));
}

TEST(HostClock, NonsenseOverflowsNothing) {
  HostClock clock;
  for (int64_t told : {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    clock.Add({Ours(seconds(1)), Ours(seconds(2)), told});
    for (int64_t stamp :
         {std::numeric_limits<int64_t>::min(), int64_t{0}, std::numeric_limits<int64_t>::max()})
      EXPECT_TRUE(clock.Convert(stamp));
  }
}

TEST(HostClock, NoMoreReadingsAreKeptThanMatter) {
  HostClock clock;
  for (int i = 0; i < 1000; ++i)
    clock.Add(Reading(seconds(100 + 2 * i), milliseconds(1), seconds(7)));
  EXPECT_LT(clock.Convert(Nanoseconds(seconds(2100 + 7)))->uncertainty, milliseconds(2));
  // The oldest are gone: about long ago not much is known any more.
  EXPECT_GT(clock.Convert(Nanoseconds(seconds(100 + 7)))->uncertainty, milliseconds(500));
}

TEST(ClockSchedule, SeveralAtOnceThenOneEveryTwoSeconds) {
  ClockSchedule questions(2);
  TimePoint now = Ours(seconds(10));
  EXPECT_FALSE(questions.Next(0, now)) << "it is not there yet";
  questions.Begin(0);
  for (uint32_t number = 1; number <= 4; ++number) {
    auto question = questions.Next(0, now);
    ASSERT_TRUE(question);
    EXPECT_EQ(question->number, number);
    EXPECT_FALSE(questions.Next(0, now)) << "one at a time";
    EXPECT_FALSE(questions.HandleReply(0, TimeReply{number + 1, 1, 2}, now)) << "not asked";
    now += milliseconds(3);
    auto reading = questions.HandleReply(0, TimeReply{number, 1, 77}, now);
    ASSERT_TRUE(reading);
    EXPECT_EQ(reading->answered - reading->asked, milliseconds(3));
    EXPECT_EQ(reading->host_ns, 77);
    EXPECT_FALSE(questions.HandleReply(0, TimeReply{number, 1, 78}, now)) << "answered already";
  }
  EXPECT_FALSE(questions.Next(0, now));
  EXPECT_TRUE(questions.Next(0, now + seconds(2)));
  EXPECT_FALSE(questions.Next(1, now + seconds(2)));
}

// Two hosts: h0 is `seconds(1'000'000)` ahead of ours, h1 is behind; both are known to 0.1 ms.
constexpr Duration kAhead[] = {seconds(1'000'000), seconds(-40)};

Departure At(uint32_t rank, uint32_t host, Duration at) {
  return {rank, host, Nanoseconds(at + kAhead[host])};
}
Departure Signalled(Departure d) {
  d.by_signal = true;
  return d;
}
Departure Told(Departure d) {
  d.is_consequence = true;
  return d;
}

TEST(FirstCause, TheDepartureThatComesFirstUnlessItIsAConsequence) {
  constexpr Duration t = seconds(101);
  constexpr Duration near = microseconds(50), far = milliseconds(20);
  struct Row {
    const char* what;
    std::vector<Departure> departures;
    std::optional<uint32_t> named;
  };
  const Row rows[] = {
      {"none", {}, std::nullopt},
      {"one", {At(3, 1, t)}, 3},
      {"the earlier one, on the host with the larger clock", {At(0, 0, t), At(1, 1, t + far)}, 0},
      {"the earlier one, on the host with the smaller clock", {At(0, 0, t + far), At(1, 1, t)}, 1},
      {"far apart a signal does not matter", {At(0, 0, t), Signalled(At(1, 1, t + far))}, 0},
      {"too close to tell: the signal", {At(0, 0, t), Signalled(At(1, 1, t + near))}, 1},
      {"the same, the other way round", {Signalled(At(0, 0, t + near)), At(1, 1, t)}, 0},
      {"too close, and alike", {At(0, 0, t + near), At(1, 1, t)}, 1},
      {"on one host the clock is exact", {At(0, 0, t), Signalled(At(1, 0, t + Duration(1)))}, 0},
      {"an end elsewhere was known", {Told(At(0, 0, t)), At(1, 1, t + near)}, 1},
      {"the same, though the agent of the cause was slow",
       {Told(At(0, 0, t)), At(1, 1, t + far)},
       1},
      {"the same on one host", {Told(At(0, 0, t)), At(1, 0, t + far)}, 1},
      {"all knew of an end (a stall)", {Told(At(0, 0, t + far)), Told(At(1, 1, t))}, 1},
      {"three",
       {At(0, 0, t + far), At(1, 1, t + near), Signalled(At(2, 0, t + milliseconds(10)))},
       1},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(FirstCause(row.departures, {ClockAhead(kAhead[0]), ClockAhead(kAhead[1])}), row.named)
        << row.what;
  }
}

TEST(FirstCause, TheUncertaintyOfTheEarlierClockCounts) {
  const std::vector<HostClock> clocks = {ClockAhead(kAhead[0], milliseconds(10)),
                                         ClockAhead(kAhead[1])};
  const Departure first = At(0, 0, seconds(101));
  const auto signal_after = [](Duration d) { return Signalled(At(1, 1, seconds(101) + d)); };
  EXPECT_EQ(FirstCause({first, signal_after(milliseconds(4))}, clocks), 1U);
  EXPECT_EQ(FirstCause({first, signal_after(milliseconds(8))}, clocks), 0U);
}

TEST(FirstCause, AHostWhoseClockIsNotKnownMayHaveBeenTheFirst) {
  const std::vector<HostClock> clocks = {ClockAhead(kAhead[0]), HostClock()};
  const Departure known = At(0, 0, seconds(101)), unknown = At(1, 1, seconds(500));
  EXPECT_EQ(FirstCause({known, unknown}, clocks), 0U);
  EXPECT_EQ(FirstCause({known, Signalled(unknown)}, clocks), 1U);
  EXPECT_EQ(FirstCause({unknown}, clocks), 1U);
}

}  // namespace
}  // namespace hvd
