#include "launcher/job/policy/host_ledger.h"

#include <gtest/gtest.h>

#include <vector>

namespace hvd {
namespace {

using namespace std::chrono_literals;

TEST(HostLedger, NothingSpeaksAgainstAPlaceThatIsNotKnown) {
  const HostLedger ledger;
  EXPECT_TRUE(ledger.MayUse("a", TimePoint{}));
  EXPECT_TRUE(ledger.MayUse("a", 3, TimePoint{}));
  EXPECT_EQ(ledger.UsableFrom("a"), TimePoint{});
  EXPECT_EQ(ledger.NextChange(TimePoint{}), std::nullopt);
}

TEST(HostLedger, AHostRestsLongerWithEachFailure) {
  struct Case {
    std::optional<CooldownRange> range;
    std::vector<std::pair<Duration, Duration>> rests;  // at least, at most
  };
  const Case cases[] = {
      {std::nullopt,
       {{1s, 1500ms},
        {2s, 2500ms},
        {4s, 4500ms},
        {8s, 8500ms},
        {16s, 16500ms},
        {32s, 32500ms},
        {60s, 60s},
        {60s, 60s}}},
      {CooldownRange{10s, 100s}, {{20s, 30s}, {40s, 50s}, {80s, 90s}, {100s, 100s}, {100s, 100s}}},
      {CooldownRange{5s, 5s}, {{5s, 5s}, {5s, 5s}}},
  };
  for (const Case& c : cases) {
    HostLedger ledger(c.range, 7);
    ManualClock clock;
    clock.Advance(1h);
    for (const auto& [least, most] : c.rests) {
      ledger.NoteHostFailure("a", clock.Now());
      const Duration rest = ledger.UsableFrom("a") - clock.Now();
      EXPECT_GE(rest, least);
      EXPECT_LE(rest, most);
      EXPECT_FALSE(ledger.MayUse("a", clock.Now()));
      EXPECT_FALSE(ledger.MayUse("a", 0, clock.Now()));
      EXPECT_TRUE(ledger.MayUse("b", 0, clock.Now()));
      EXPECT_EQ(ledger.NextChange(clock.Now()), clock.Now() + rest);
      clock.Advance(rest - 1ns);
      EXPECT_FALSE(ledger.MayUse("a", clock.Now()));
      clock.Advance(1ns);
      EXPECT_TRUE(ledger.MayUse("a", clock.Now()));
      EXPECT_EQ(ledger.NextChange(clock.Now()), std::nullopt);
    }
  }
}

TEST(HostLedger, ASlotIsTriedAgainAtOnceAndThenMoreAndMoreSeldom) {
  HostLedger ledger;
  ManualClock clock;
  clock.Advance(1h);
  for (Duration rest : {Duration(0s), Duration(1s), Duration(2s), Duration(4s), Duration(8s),
                        Duration(16s), Duration(32s), Duration(60s), Duration(60s)}) {
    ledger.NoteSlotFailure("a", 1, clock.Now());
    EXPECT_EQ(ledger.MayUse("a", 1, clock.Now()), rest == 0s);
    EXPECT_TRUE(ledger.MayUse("a", clock.Now()));
    EXPECT_TRUE(ledger.MayUse("a", 0, clock.Now()));
    EXPECT_TRUE(ledger.MayUse("b", 1, clock.Now()));
    if (rest > 0s) {
      EXPECT_EQ(ledger.NextChange(clock.Now()), clock.Now() + rest);
      clock.Advance(rest - 1ns);
      EXPECT_FALSE(ledger.MayUse("a", 1, clock.Now()));
      clock.Advance(1ns);
    }
    EXPECT_TRUE(ledger.MayUse("a", 1, clock.Now()));
  }
}

TEST(HostLedger, AWorkerThatDoesWellMakesTheNextFailureTheFirst) {
  HostLedger ledger(CooldownRange{10s, 100s});
  ManualClock clock;
  ledger.NoteHostFailure("a", clock.Now());
  ledger.NoteHostFailure("a", clock.Now());
  ledger.NoteSlotFailure("a", 0, clock.Now());
  ledger.NoteSlotFailure("a", 0, clock.Now());
  ledger.NoteSlotFailure("a", 1, clock.Now());
  clock.Advance(100s);
  ledger.NoteGood("a", 0, clock.Now());
  EXPECT_TRUE(ledger.MayUse("a", 0, clock.Now()));
  ledger.NoteSlotFailure("a", 0, clock.Now());
  EXPECT_TRUE(ledger.MayUse("a", 0, clock.Now()));
  ledger.NoteSlotFailure("a", 1, clock.Now());  // its second
  EXPECT_FALSE(ledger.MayUse("a", 1, clock.Now()));
  ledger.NoteHostFailure("a", clock.Now());
  EXPECT_LE(ledger.UsableFrom("a") - clock.Now(), 30s);
}

TEST(HostLedger, AWorkerThatFailsCostsItsHostARestWhereARangeIsGiven) {
  const TimePoint now{};
  HostLedger without;
  without.NoteWorkerFailure("a", 0, now);
  EXPECT_TRUE(without.MayUse("a", 0, now));

  HostLedger ledger(CooldownRange{10s, 100s});
  ledger.NoteWorkerFailure("a", 0, now);
  EXPECT_FALSE(ledger.MayUse("a", 1, now)) << "the whole host";
  EXPECT_GE(ledger.UsableFrom("a"), now + 20s);
  EXPECT_LE(ledger.UsableFrom("a"), now + 30s);
  const TimePoint usable = ledger.UsableFrom("a");
  ledger.NoteWorkerFailure("a", 1, now + 1s);  // died together with the first
  ledger.NoteGood("a", 2, now + 2s);           // its peers form a generation without them
  EXPECT_EQ(ledger.UsableFrom("a"), usable);
  ledger.NoteWorkerFailure("a", 0, usable);
  EXPECT_GE(ledger.UsableFrom("a"), usable + 40s) << "the second failure";
  EXPECT_LE(ledger.UsableFrom("a"), usable + 50s) << "and not the third";
}

TEST(HostLedger, TheNextChangeIsTheEarliestOfAll) {
  HostLedger ledger(CooldownRange{10s, 10s});
  const TimePoint now{};
  ledger.NoteHostFailure("a", now);
  ledger.NoteHostFailure("b", now + 1s);
  ledger.NoteSlotFailure("c", 0, now);
  ledger.NoteSlotFailure("c", 0, now + 3s);
  EXPECT_EQ(ledger.NextChange(now + 3s), now + 4s);
  EXPECT_EQ(ledger.NextChange(now + 4s), now + 10s);
  EXPECT_EQ(ledger.NextChange(now + 10s), now + 11s);
  EXPECT_EQ(ledger.NextChange(now + 11s), std::nullopt);
}

TEST(HostLedger, TheSameSeedGivesTheSameTimes) {
  const auto rests = [](uint64_t seed) {
    HostLedger ledger(CooldownRange{10s, 1000s}, seed);
    std::vector<Duration> found;
    for (const char* host : {"a", "b", "a", "c"}) {
      ledger.NoteHostFailure(host, TimePoint{});
      found.push_back(ledger.UsableFrom(host) - TimePoint{});
    }
    return found;
  };
  EXPECT_EQ(rests(1), rests(1));
  EXPECT_NE(rests(1), rests(2));
}

}  // namespace
}  // namespace hvd
