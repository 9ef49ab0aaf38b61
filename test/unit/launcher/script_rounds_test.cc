// How readings become observations, and that each verdict is said once.
#include "launcher/stall/script_rounds.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "launcher/stall/script_progress.h"
#include "launcher/stall/silence_watch.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ScriptProgressTest : public ::testing::Test {
 protected:
  void Read(const char* state, uint64_t sleeps, uint64_t ticks = 0, uint64_t bytes = 0) {
    progress_.AddReading({7, state, "futex", sleeps, ticks, bytes}, now_);
  }
  ScriptObservation Seen() const { return progress_.Observe(3, now_); }
  static ForeignCall Call(const char* site) {
    return {"all_reduce", false, false, false, site, ""};
  }

  TimePoint now_{std::chrono::hours(1)};
  ScriptProgress progress_{seconds(8)};
};

TEST_F(ScriptProgressTest, StillIsTheTimeSinceItFellAsleep) {
  Read("S", 5);
  now_ += seconds(1);
  Read("S", 6);
  now_ += seconds(3);
  Read("S", 6);
  EXPECT_EQ(Seen().still_ms, 3000);
  EXPECT_EQ(Seen().silent_ms, 4000);
  EXPECT_EQ(Seen().worker, 3U);
  EXPECT_EQ(Seen().pid, 7);
  progress_.NoteSign(now_ - seconds(1));
  EXPECT_EQ(Seen().silent_ms, 1000);
}

TEST_F(ScriptProgressTest, UseIsThatOfTheLastHalfOfTheWarningTime) {
  Read("R", 1, 100, 10);
  for (int i = 0; i < 8; ++i) {
    now_ += seconds(1);
    Read("R", 1, 100 + (i < 4 ? 100U : 100U + 20U * static_cast<uint64_t>(i - 3)),
         i < 4 ? 10U : 1010U);
  }
  EXPECT_EQ(Seen().cpu_permille, 200U);
  EXPECT_EQ(Seen().bytes_moved, 1000U);
}

TEST_F(ScriptProgressTest, AFewTicksAreNoWork) {
  Read("S", 1, 100);
  now_ += seconds(1);
  Read("S", 1, 104);
  EXPECT_EQ(Seen().cpu_permille, 0U);
}

TEST_F(ScriptProgressTest, StacksAreReadOncePerWarningTimeOfASilentRank) {
  Read("R", 1);
  EXPECT_FALSE(progress_.WantsStacks(now_));
  now_ += seconds(4);
  EXPECT_TRUE(progress_.WantsStacks(now_));
  Read("R", 1);
  progress_.NoteStacks(Call("a.py:1"), now_);
  now_ += seconds(7);
  EXPECT_FALSE(progress_.WantsStacks(now_));
  now_ += seconds(1);
  EXPECT_TRUE(progress_.WantsStacks(now_));
  progress_.NoteSign(now_);
  EXPECT_FALSE(progress_.WantsStacks(now_));
}

TEST_F(ScriptProgressTest, OneThatHasNotWokenUpSinceIsWhereItWas) {
  Read("S", 1);
  now_ += seconds(4);
  progress_.NoteStacks(Call("a.py:1"), now_);
  now_ += seconds(20);
  Read("S", 1);
  EXPECT_FALSE(progress_.WantsStacks(now_));
  Read("S", 2);
  EXPECT_TRUE(progress_.WantsStacks(now_));
}

TEST_F(ScriptProgressTest, TheSameLineCountsFromTheFirstLookWithoutASignBetween) {
  Read("S", 1);
  now_ += seconds(5);
  progress_.NoteStacks(Call("a.py:1"), now_);
  EXPECT_EQ(Seen().same_ms, 0);
  now_ += seconds(8);
  progress_.NoteStacks(Call("a.py:1"), now_);
  EXPECT_EQ(Seen().same_ms, 8000);
  EXPECT_EQ(Seen().call, "all_reduce");
  now_ += seconds(8);
  progress_.NoteStacks(Call("a.py:2"), now_);
  EXPECT_EQ(Seen().same_ms, 0);
  progress_.NoteSign(now_ + seconds(1));
  now_ += seconds(8);
  progress_.NoteStacks(Call("a.py:2"), now_);
  EXPECT_EQ(Seen().same_ms, 0);
}

TEST_F(ScriptProgressTest, AnotherProcessBeginsAnew) {
  Read("S", 1);
  now_ += seconds(5);
  progress_.NoteTrouble("no", now_);
  progress_.AddReading({8, "S", "", 1, 0, 0}, now_);
  EXPECT_EQ(Seen().still_ms, 0);
  EXPECT_TRUE(progress_.WantsStacks(now_));
}

// ---- ScriptRounds

ScriptObservation Waiting(uint32_t worker, const char* call, int64_t ms) {
  ScriptObservation seen;
  seen.worker = worker;
  seen.state = "S";
  seen.blocked_in = "clock_nanosleep";
  seen.silent_ms = seen.still_ms = ms;
  seen.sampled = 1;
  seen.call = call;
  seen.site = "a.py:1 in f";
  return seen;
}

std::map<uint32_t, ScriptRank> TwoRanks() {
  return {{4, {0, "a", false, {}}}, {5, {1, "b", false, {}}}};
}

TEST(ScriptRounds, AVerdictIsSaidOnceUntilARankMoves) {
  ScriptRounds rounds(1000, 0);
  rounds.Handle(0, {{Waiting(4, "all_reduce", 2000)}});
  EXPECT_FALSE(rounds.Look(TwoRanks())) << "host b has not spoken";
  rounds.Handle(1, {{Waiting(5, "", 2000), Waiting(9, "", 2000)}});
  const std::optional<ScriptStall> stall = rounds.Look(TwoRanks());
  ASSERT_TRUE(stall);
  EXPECT_TRUE(stall->is_new);
  EXPECT_FALSE(stall->ends);
  rounds.Handle(1, {{Waiting(5, "", 9000)}});
  EXPECT_FALSE(rounds.Look(TwoRanks()));
  rounds.Handle(1, {});
  EXPECT_FALSE(rounds.Look(TwoRanks()));
  rounds.Handle(1, {{Waiting(5, "", 2000)}});
  EXPECT_TRUE(rounds.Look(TwoRanks()));
}

TEST(ScriptRounds, TheRanksOfAnotherLauncherAreInThePlaceOfTheirWorker) {
  const auto guest = [](uint32_t worker, uint32_t rank, const char* call) {
    ScriptObservation seen = Waiting(worker, call, 2000);
    seen.is_guest = 1;
    seen.guest = rank;
    return seen;
  };
  ScriptRounds rounds(1000, 0);
  rounds.Handle(0, {{guest(4, 0, "all_reduce"), guest(4, 1, "all_reduce")}});
  rounds.Handle(1, {{guest(5, 2, "")}});
  const std::optional<ScriptStall> stall = rounds.Look(TwoRanks());
  ASSERT_TRUE(stall);
  EXPECT_TRUE(stall->verdict.sentence.starts_with(
      "the job hangs: ranks 0-1 have waited 2 s in all_reduce at a.py:1 in f for rank 2, which "))
      << stall->verdict.sentence;

  ScriptRounds two_worlds(1000, 0);
  two_worlds.Handle(0, {{guest(4, 0, "all_reduce")}});
  two_worlds.Handle(1, {{guest(5, 0, "")}});
  EXPECT_FALSE(two_worlds.Look(TwoRanks()));
}

// ---- GuestsBelow

TEST(GuestRanks, AreProcessesWithAnotherPlaceThanTheWorker) {
  const std::map<pid_t, std::string> environments = {
      {1, "RANK=0\nWORLD_SIZE=1\nMASTER_PORT=5\n"},
      {2, "RANK=0\nWORLD_SIZE=2\nMASTER_PORT=6\n"},
      {3, "RANK=1\nWORLD_SIZE=2\nMASTER_PORT=6\n"},
      {4, "RANK=1\nWORLD_SIZE=2\nMASTER_PORT=6\n"},  // of its data loader
      {5, "RANK=0\nWORLD_SIZE=1\nMASTER_PORT=5\n"},  // a helper of the launcher
      {6, "RANK=0\nWORLD_SIZE=1\nMASTER_PORT=5\nOMPI_COMM_WORLD_RANK=7\n"}};
  const std::vector<ProcessInfo> all = {{1, 0, 1, 'S', 0}, {2, 1, 1, 'S', 0}, {3, 1, 1, 'S', 0},
                                        {4, 3, 1, 'S', 0}, {5, 1, 1, 'S', 0}, {6, 5, 1, 'S', 0}};
  const auto environment_of = [&](pid_t pid) {
    std::string text = environments.at(pid);
    std::ranges::replace(text, '\n', '\0');
    return text;
  };
  std::vector<std::pair<uint32_t, pid_t>> found;
  for (const GuestRank& guest : GuestsBelow(1, all, environment_of))
    found.emplace_back(guest.rank, guest.pid);
  EXPECT_EQ(found, (std::vector<std::pair<uint32_t, pid_t>>{{0, 2}, {1, 3}, {7, 6}}));
  EXPECT_TRUE(GuestsBelow(3, all, environment_of).empty()) << "an ordinary worker has none";
}

TEST(ScriptRounds, AHangEndsTheJobAtTheLimitAndANoticeNever) {
  ScriptRounds rounds(1000, 5000);
  rounds.Handle(0, {{Waiting(4, "all_reduce", 4000), Waiting(5, "", 4000)}});
  EXPECT_FALSE(rounds.Look(TwoRanks())->ends);
  rounds.Handle(0, {{Waiting(4, "all_reduce", 5000), Waiting(5, "", 5000)}});
  const std::optional<ScriptStall> stall = rounds.Look(TwoRanks());
  ASSERT_TRUE(stall);
  EXPECT_TRUE(stall->ends && !stall->is_new);
  EXPECT_FALSE(rounds.Look(TwoRanks())) << "once";

  ScriptRounds others(1000, 5000);
  ScriptObservation works = Waiting(5, "", 9000);
  works.state = "R";
  others.Handle(0, {{Waiting(4, "all_reduce", 9000), works}});
  ASSERT_FALSE(others.Look(TwoRanks())->ends);
}

}  // namespace
}  // namespace hvd
