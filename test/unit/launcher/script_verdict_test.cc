// What is said of ranks that wait in collectives of another library.
#include "launcher/stall/verdict/script_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace hvd {
namespace {

using Kind = ScriptVerdict::Kind;
using Change = std::function<void(ScriptObservation&)>;

constexpr int64_t kWarning = 10'000;

ScriptRank At(uint32_t rank, const std::string& call, const std::string& site,
              const Change& change = {}) {
  ScriptObservation seen;
  seen.worker = rank;
  seen.pid = 100 + static_cast<int32_t>(rank);
  seen.state = "S";
  seen.blocked_in = "futex";
  seen.silent_ms = 14'000;
  seen.still_ms = 12'000;
  seen.sampled = 1;
  seen.sample_ms = 9'000;
  seen.call = call;
  seen.site = site;
  if (change) change(seen);
  return {rank, "h", false, seen};
}
ScriptRank Waits(uint32_t rank, const Change& change = {}) {
  return At(rank, "all_reduce", "train.py:41 in main", change);
}
ScriptRank Sleeps(uint32_t rank, const Change& change = {}) {
  return At(rank, "", "train.py:57 in rest", [&](ScriptObservation& seen) {
    seen.blocked_in = "clock_nanosleep";
    if (change) change(seen);
  });
}

TEST(ScriptVerdict, ARankThatSleepsHangsTheOthers) {
  const ScriptVerdict found = ExplainScript({Waits(0), Waits(1), Sleeps(2)}, kWarning);
  EXPECT_EQ(found.kind, Kind::kHang);
  EXPECT_EQ(
      StallText(found.verdict),
      "the job hangs: ranks 0-1 have waited 12 s in all_reduce at train.py:41 in main for rank "
      "2, which sleeps at train.py:57 in rest\n"
      "  rank 2 on host h (pid 102) has not woken up for 12 s, in the system call "
      "clock_nanosleep.");
  ASSERT_EQ(found.verdict.missing.size(), 1U);
  EXPECT_EQ(found.verdict.missing[0].rank, 2U);
  EXPECT_EQ(found.verdict.missing[0].found, RankClass::kBlocked);
}

TEST(ScriptVerdict, ARankThatWorksIsANotice) {
  const ScriptVerdict found = ExplainScript({Sleeps(0,
                                                    [](ScriptObservation& seen) {
                                                      seen.state = "R";
                                                      seen.sample_ms = 100;
                                                      seen.inside = "save (torch/serialization.py)";
                                                    }),
                                             Waits(1), Waits(2), Waits(3)},
                                            kWarning);
  EXPECT_EQ(found.kind, Kind::kNotice);
  EXPECT_EQ(StallText(found.verdict),
            "ranks 1-3 have waited 12 s in all_reduce at train.py:41 in main for rank 0, which is "
            "busy in save (torch/serialization.py) at train.py:57 in rest");
}

TEST(ScriptVerdict, EachKindOfMissingRankHasItsClass) {
  const struct {
    const char* what;
    Change change;
    ScriptClass expected;
    Kind kind;
  } cases[] = {
      {"sleeps", {}, ScriptClass::kSleeps, Kind::kHang},
      {"select of an old Python", [](auto& s) { s.blocked_in = "select"; }, ScriptClass::kSleeps,
       Kind::kHang},
      {"a lock", [](auto& s) { s.blocked_in = "futex"; }, ScriptClass::kLock, Kind::kHang},
      {"a lock of a file", [](auto& s) { s.blocked_in = "flock"; }, ScriptClass::kLock,
       Kind::kHang},
      {"a file", [](auto& s) { s.blocked_in = "openat"; }, ScriptClass::kFile, Kind::kHang},
      {"a dead server", [](auto& s) { s.state = "D", s.blocked_in = "read"; }, ScriptClass::kFile,
       Kind::kHang},
      {"stopped", [](auto& s) { s.state = "T"; }, ScriptClass::kStopped, Kind::kHang},
      {"stopped a moment ago", [](auto& s) { s.state = "T", s.still_ms = 0; },
       ScriptClass::kStopped, Kind::kHang},
      {"another collective", [](auto& s) { s.call = "barrier"; }, ScriptClass::kWaits, Kind::kHang},
      {"computes", [](auto& s) { s.state = "R", s.sample_ms = 0; }, ScriptClass::kBusy,
       Kind::kNotice},
      {"its threads compute", [](auto& s) { s.cpu_permille = 30; }, ScriptClass::kBusy,
       Kind::kNotice},
      {"its threads write", [](auto& s) { s.bytes_moved = 1 << 20; }, ScriptClass::kMoves,
       Kind::kNotice},
      {"looks again and again", [](auto& s) { s.still_ms = 200, s.same_ms = 11'000; },
       ScriptClass::kPolls, Kind::kNotice},
      {"a disk", [](auto& s) { s.state = "D", s.blocked_in = "fsync"; }, ScriptClass::kDisk,
       Kind::kNotice},
      {"the network", [](auto& s) { s.blocked_in = "recvfrom"; }, ScriptClass::kNetwork,
       Kind::kNotice},
      {"a selector", [](auto& s) { s.blocked_in = "select", s.inside = "communicate (x.py)"; },
       ScriptClass::kNetwork, Kind::kNotice},
      {"a child", [](auto& s) { s.blocked_in = "wait4"; }, ScriptClass::kChild, Kind::kNotice},
      {"a call without a name", [](auto& s) { s.blocked_in = "number 999"; }, ScriptClass::kUnknown,
       Kind::kNotice},
      {"no stack", [](auto& s) { s.sampled = 0, s.trouble = "py-spy says: no"; },
       ScriptClass::kUnknown, Kind::kNotice},
  };
  for (const auto& c : cases) {
    const ScriptRank rank = Sleeps(2, c.change);
    EXPECT_EQ(ScriptClassOf(rank, kWarning), c.expected) << c.what;
    EXPECT_EQ(ExplainScript({Waits(0), Waits(1), rank}, kWarning).kind, c.kind) << c.what;
  }
  EXPECT_EQ(ExplainScript({Waits(0), {1, "h", true, {}}}, kWarning).kind, Kind::kHang);
}

TEST(ScriptVerdict, NothingIsSaidBeforeItIsKnown) {
  const struct {
    const char* what;
    std::vector<ScriptRank> ranks;
    Kind kind;
  } cases[] = {
      {"a rank writes", {Waits(0), Sleeps(1, [](auto& s) { s.silent_ms = 4'000; })}, Kind::kMoves},
      {"its agent has not spoken", {Waits(0), {1, "h", false, {}}}, Kind::kMoves},
      {"none waits", {Sleeps(0), Sleeps(1)}, Kind::kMoves},
      {"all have left", {{0, "h", true, {}}}, Kind::kMoves},
      {"too short", {Waits(0, [](auto& s) { s.still_ms = 9'000; }), Sleeps(1)}, Kind::kUnclear},
      {"the stack is older than the sleep",
       {Waits(0, [](auto& s) { s.sample_ms = 13'000; }), Sleeps(1)},
       Kind::kUnclear},
      {"no stack yet", {Waits(0), Sleeps(1, [](auto& s) { s.sampled = 0; })}, Kind::kUnclear},
      {"it fell asleep a moment ago",
       {Waits(0), Sleeps(1, [](auto& s) { s.still_ms = 3'000, s.sample_ms = 1'000; })},
       Kind::kUnclear},
      {"it works, and its stack is old",
       {Waits(0), Sleeps(1, [](auto& s) { s.state = "R", s.sample_ms = 9'000; })},
       Kind::kUnclear},
      {"a loop that was seen there twice",
       {Waits(0, [](auto& s) { s.still_ms = 100, s.same_ms = 30'000; }), Sleeps(1)},
       Kind::kUnclear},
      {"backward with threads that compute",
       {Waits(0, [](auto& s) { s.may_compute = 1, s.cpu_permille = 900; }), Sleeps(1)},
       Kind::kMoves},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(ExplainScript(c.ranks, kWarning).kind, c.kind) << c.what;
    EXPECT_EQ(ExplainScript(c.ranks, kWarning).key, "") << c.what;
  }
}

TEST(ScriptVerdict, RanksThatSpinWaitAsWell) {
  const Change spins = [](auto& s) {
    s.state = "R";
    s.cpu_permille = 1'000;
    s.same_ms = 11'000;
  };
  EXPECT_EQ(ExplainScript({Waits(0, spins), Sleeps(1)}, kWarning).kind, Kind::kHang);
  const Change wakes = [&](auto& s) { spins(s), s.still_ms = 1'000; };
  EXPECT_EQ(ExplainScript({Waits(0, wakes), Sleeps(1)}, kWarning).kind, Kind::kUnclear);
}

TEST(ScriptVerdict, WhoPollsAtTheBeginningWaits) {
  const Change polls = [](auto& s) { s.still_ms = 10, s.same_ms = 11'000, s.once = 1; };
  const ScriptVerdict found = ExplainScript({Waits(0, polls), Sleeps(1)}, kWarning);
  EXPECT_EQ(found.kind, Kind::kNotice);
  EXPECT_THAT(found.verdict.sentence, testing::HasSubstr("rank 0 has waited 11 s in all_reduce"));
}

TEST(ScriptVerdict, RanksInOneCallAreANoticeAndInTwoAHang) {
  const ScriptVerdict same = ExplainScript({Waits(0), Waits(1)}, kWarning);
  EXPECT_EQ(same.kind, Kind::kNotice);
  EXPECT_THAT(same.verdict.sentence,
              testing::StartsWith("all ranks have waited 12 s in all_reduce"));
  const ScriptVerdict two =
      ExplainScript({Waits(0), At(1, "barrier", "train.py:90 in main"), Waits(2)}, kWarning);
  EXPECT_EQ(two.kind, Kind::kHang);
  EXPECT_EQ(StallText(two.verdict),
            "the job hangs: ranks have waited 12 s in different calls of collectives\n"
            "  ranks 0,2 on host h in all_reduce at train.py:41 in main.\n"
            "  rank 1 on host h (pid 101) in barrier at train.py:90 in main.");
}

TEST(ScriptVerdict, WithoutStacksItSaysWhatTheKernelShows) {
  const Change blind = [](auto& s) {
    s.sampled = 0, s.call = s.site = "", s.trouble = "pip install";
  };
  const ScriptVerdict found = ExplainScript({Waits(0, blind), Sleeps(1, blind)}, kWarning);
  EXPECT_EQ(found.kind, Kind::kNotice);
  EXPECT_EQ(StallText(found.verdict),
            "no rank has moved for 12 s; in which lines they wait is not known: pip install\n"
            "  rank 0 on host h (pid 100) sleeps in futex.\n"
            "  rank 1 on host h (pid 101) sleeps in clock_nanosleep.");
  EXPECT_EQ(ExplainScript({Waits(0, blind), Sleeps(1, [&](auto& s) { blind(s), s.state = "R"; })},
                          kWarning)
                .kind,
            Kind::kMoves);
}

TEST(ScriptVerdict, AJobThatIsStoppedAsAWholeIsNotReported) {
  const Change stopped = [](auto& s) { s.sampled = 0, s.trouble = "pip install", s.state = "T"; };
  EXPECT_EQ(ExplainScript({Waits(0, stopped), Sleeps(1, stopped)}, kWarning).kind, Kind::kMoves);
}

TEST(ScriptVerdict, TheKeyOfANoticeDoesNotChangeWithTheLineOfWork) {
  const auto works = [](const char* site) {
    return Sleeps(1, [&](auto& s) { s.state = "R", s.sample_ms = 0, s.site = site; });
  };
  const std::string key = ExplainScript({Waits(0), works("a.py:1")}, kWarning).key;
  EXPECT_EQ(ExplainScript({Waits(0), works("a.py:2")}, kWarning).key, key);
  EXPECT_NE(ExplainScript({Waits(0), Sleeps(1)}, kWarning).key, key);
}

// In a healthy world at least one rank moves: it has woken up lately, or works, or it has been seen
// to wait for something that may come. Whatever the others show, there is no hang.
TEST(ScriptVerdict, NoHealthyWorldHangs) {
  std::mt19937 random(20);
  const auto below = [&](int64_t limit) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
  };
  const char* const states[] = {"R", "S", "D", "T"};
  const char* const calls[] = {"futex", "clock_nanosleep", "read", "recvfrom", "wait4", "", "poll"};
  const auto anything = [&](ScriptObservation& s) {
    s.state = states[below(4)];
    s.blocked_in = calls[below(7)];
    s.silent_ms = below(60'000);
    s.still_ms = below(30'000);
    s.sampled = below(8) != 0;
    s.sample_ms = below(12'000);
    s.same_ms = below(30'000);
    s.cpu_permille = static_cast<uint32_t>(below(3) == 0 ? below(1'500) : 0);
    s.bytes_moved = static_cast<uint64_t>(below(4) == 0 ? below(1 << 22) : 0);
    if (below(3) == 0) s.call = "";
    s.site = "train.py:" + std::to_string(below(3));
    s.may_compute = below(4) == 0;
    s.once = below(8) == 0;
  };
  // What the rank that moves shows.
  const Change moves[] = {
      [&](auto& s) { s.state = below(2) == 0 ? "S" : "D", s.still_ms = below(9'000); },
      [&](auto& s) { s.state = "R", s.call = "", s.still_ms = below(60'000); },
      [&](auto& s) { s.state = "R", s.still_ms = below(9'000); },
      [&](auto& s) { s.state = "S", s.call = "", s.cpu_permille = 20 + below(1'000); },
      [&](auto& s) { s.state = "S", s.call = "", s.bytes_moved = (1 << 16) + below(1 << 20); },
      [&](auto& s) { s.state = "S", s.call = "", s.blocked_in = "wait4"; },
      [&](auto& s) { s.state = "S", s.call = "", s.blocked_in = "recvfrom"; },
      [&](auto& s) { s.state = "D", s.call = "", s.blocked_in = "fsync"; },
      [&](auto& s) { s.silent_ms = below(5'000); },
  };
  int notices = 0;
  for (int world = 0; world < 20'000; ++world) {
    std::vector<ScriptRank> ranks;
    const auto size = static_cast<uint32_t>(2 + below(4));
    // Mostly ranks that wait in a way that looks like a hang.
    for (uint32_t rank = 0; rank < size; ++rank)
      ranks.push_back(below(4) == 0   ? Waits(rank, anything)
                      : below(4) == 0 ? Sleeps(rank)
                                      : Waits(rank));
    ScriptObservation& mover = *ranks[static_cast<size_t>(below(size))].seen;
    moves[below(std::size(moves))](mover);
    const ScriptVerdict found = ExplainScript(ranks, kWarning);
    ASSERT_NE(found.kind, Kind::kHang) << "world " << world << ": " << found.verdict.sentence;
    ASSERT_EQ(found.verdict.sentence.find("hang"), std::string::npos);
    notices += found.kind == Kind::kNotice;
  }
  EXPECT_GT(notices, 500) << "worlds of which nothing is said prove little";
}

}  // namespace
}  // namespace hvd
