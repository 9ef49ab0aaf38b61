// The text about a collective that takes too long, by what the agents found out.
#include "launcher/stall/verdict/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/stall/verdict/python_site.h"

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kA = 11, kB = 22;

RankFacts Rank(uint32_t rank) {
  RankFacts facts;
  facts.rank = rank;
  facts.pid = static_cast<int32_t>(100 + rank);
  facts.in_world = 1;
  facts.state = "S";
  facts.submitted = 7;
  facts.last = "before";
  return facts;
}

// The rank waits in `name` for these; all of its threads do.
RankFacts Waits(uint32_t rank, uint64_t key, const std::string& name,
                std::vector<uint32_t> awaited) {
  RankFacts facts = Rank(rank);
  WaitFacts wait;
  wait.key = key;
  wait.id = 1000 + key;
  wait.name = name;
  wait.waited_ms = 5000;
  wait.awaited = std::move(awaited);
  facts.waits = {wait};
  facts.pending = {key};
  facts.all_wait = 1;
  facts.finished = 6;
  facts.last_finished = "before";
  return facts;
}

WorldFacts World(std::vector<std::optional<RankFacts>> ranks) {
  WorldFacts facts;
  facts.ranks = std::move(ranks);
  facts.hosts.assign(facts.ranks.size(), "h");
  return facts;
}

std::set<uint32_t> Never(const WorldFacts& facts) { return NeverEnding(facts, facts); }

// ---- classes

struct Case {
  const char* what;
  std::function<void(RankFacts&)> change;
  RankClass expected;
};

TEST(Verdict, HasAClassForEachMissingRank) {
  const std::vector<Case> cases = {
      {"gone", [](RankFacts& f) { f.state = ""; }, RankClass::kDead},
      {"a zombie", [](RankFacts& f) { f.state = "Z"; }, RankClass::kDead},
      {"SIGSTOP", [](RankFacts& f) { f.state = "T"; }, RankClass::kStopped},
      {"a debugger", [](RankFacts& f) { f.state = "t"; }, RankClass::kStopped},
      {"left", [](RankFacts& f) { f.in_world = 0; }, RankClass::kEndedEarly},
      {"left and gone", [](RankFacts& f) { f.in_world = 0, f.state = ""; }, RankClass::kEndedEarly},
      {"left and stopped", [](RankFacts& f) { f.in_world = 0, f.state = "T"; },
       RankClass::kEndedEarly},
      {"another one", [](RankFacts& f) { f = Waits(1, kB, "b", {0}); }, RankClass::kElsewhere},
      {"the same one", [](RankFacts& f) { f = Waits(1, kA, "a", {2}); }, RankClass::kWorking},
      {"stopped while it waited", [](RankFacts& f) { f = Waits(1, kB, "b", {0}), f.state = "T"; },
       RankClass::kStopped},
      {"runs", [](RankFacts& f) { f.state = "R"; }, RankClass::kBusy},
      {"its threads run", [](RankFacts& f) { f.cpu_percent = 350; }, RankClass::kBusy},
      {"sleeps", [](RankFacts& f) { f.blocked_in = "read"; }, RankClass::kBlocked},
      {"waits for a disk", [](RankFacts& f) { f.state = "D"; }, RankClass::kBlocked},
  };
  for (const Case& c : cases) {
    RankFacts facts = Rank(1);
    c.change(facts);
    EXPECT_EQ(ClassOf(facts, kA), c.expected) << c.what;
  }
  EXPECT_EQ(ClassOf(std::nullopt, kA), RankClass::kUnreachable);
}

// ---- the end

TEST(Verdict, TwoRanksInTwoCollectivesNeverEnd) {
  const WorldFacts facts = World({Waits(0, kA, "a", {1}), Waits(1, kB, "b", {0})});
  EXPECT_THAT(Never(facts), ElementsAre(0, 1));
}

TEST(Verdict, AWaitForARankThatComputesMayEnd) {
  EXPECT_THAT(Never(World({Waits(0, kA, "a", {1}), Rank(1)})), IsEmpty());
  // Also through others.
  EXPECT_THAT(Never(World({Waits(0, kA, "a", {1}), Waits(1, kB, "b", {2}), Rank(2)})), IsEmpty());
}

TEST(Verdict, AWaitForARankThatHasEndedNeverEnds) {
  RankFacts left = Rank(1);
  left.in_world = 0;
  EXPECT_THAT(Never(World({Waits(0, kA, "a", {1}), left})), ElementsAre(0));
}

TEST(Verdict, ARankThatCannotBeAskedMayGoOn) {
  EXPECT_THAT(Never(World({Waits(0, kA, "a", {1}), std::nullopt})), IsEmpty());
}

TEST(Verdict, ARankThatIsStoppedMayGoOn) {
  RankFacts stopped = Waits(1, kB, "b", {0});
  stopped.state = "T";
  EXPECT_THAT(Never(World({Waits(0, kA, "a", {1}), stopped})), IsEmpty());
}

// A coordinator names all ranks of a host that is not ready, also those that have submitted.
TEST(Verdict, OrdersThatDifferAreNoDeadlockWhereBothHaveSubmitted) {
  RankFacts first = Waits(0, kA, "a", {2, 3}), third = Waits(2, kB, "b", {0, 1});
  first.pending = third.pending = {kA, kB};
  EXPECT_THAT(Never(World({first, Rank(1), third, Rank(3)})), IsEmpty());
}

TEST(Verdict, AThreadThatDoesNotWaitMaySubmit) {
  RankFacts one_thread_free = Waits(1, kB, "b", {0});
  one_thread_free.all_wait = 0;
  EXPECT_THAT(Never(World({Waits(0, kA, "a", {1}), one_thread_free})), IsEmpty());
}

TEST(Verdict, EveryWaitOfARankHasToBeHopeless) {
  RankFacts two = Waits(1, kB, "b", {0});
  WaitFacts other = two.waits[0];
  other.key = other.id = 33;
  other.awaited = {2};
  two.waits.push_back(other);
  EXPECT_THAT(Never(World({Waits(0, kA, "a", {1}), two, Rank(2)})), IsEmpty());
  EXPECT_THAT(Never(World({Waits(0, kA, "a", {1}), two, Waits(2, 44, "c", {0})})),
              ElementsAre(0, 1, 2));
}

TEST(Verdict, DataThatAreOnTheirWayMayArrive) {
  RankFacts moves = Waits(0, kA, "a", {1});
  moves.waits[0].submitted = 1;
  EXPECT_THAT(Never(World({moves, Waits(1, kB, "b", {0})})), IsEmpty());
}

TEST(Verdict, NothingMayHaveHappenedBetweenTheTwoLooks) {
  const WorldFacts before = World({Waits(0, kA, "a", {1}), Waits(1, kB, "b", {0})});
  WorldFacts now = before;
  now.ranks[1]->submitted += 1;
  EXPECT_THAT(NeverEnding(before, now), IsEmpty());
  now = before;
  now.ranks[1]->waits[0].id += 1;
  EXPECT_THAT(NeverEnding(before, now), IsEmpty());
  now = before;
  now.ranks[1]->waits[0].seen_ms = 3000;
  EXPECT_THAT(NeverEnding(before, now), IsEmpty()) << "it was not seen to wait";
  EXPECT_THAT(NeverEnding(before, before), ElementsAre(0, 1));
}

// ---- words

TEST(Verdict, NamesTheCollectiveTheRanksAndWhatTheyDo) {
  RankFacts busy = Rank(2);
  busy.state = "R";
  busy.cpu_percent = 99;
  busy.site = "/t.py:12 in load";
  const WorldFacts facts = World({Waits(0, kA, "a", {2}), Waits(1, kA, "a", {2}), busy});
  const std::optional<Verdict> verdict = Explain(facts, {}, 0);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->sentence,
            "rank 0 has waited 5 s in 'a' for rank 2 to submit it, as rank 1 does");
  EXPECT_EQ(verdict->details,
            "  rank 2 on host h (pid 102) is busy in user code at /t.py:12 in load;\n"
            "    its last finished collective was number 7, 'before'; it uses 99 % of a core; its "
            "main thread is running.\n");
  EXPECT_FALSE(verdict->never_ends);
}

TEST(Verdict, TheSituationIsTheSameUntilARankMoves) {
  RankFacts missing = Rank(1);
  missing.site = "/t.py:12 in load";
  const auto situation = [&](int64_t waited_ms) {
    RankFacts waits = Waits(0, kA, "a", {1});
    waits.waits[0].waited_ms = waited_ms;
    return Explain(World({waits, missing}), {}, 0)->situation;
  };
  const std::string sleeps = situation(5000);
  missing.cpu_percent = 3;
  EXPECT_EQ(situation(9000), sleeps);
  missing.site = "/t.py:13 in load";
  EXPECT_NE(situation(9000), sleeps);
  missing.state = "R";
  const std::string computes = situation(9000);
  EXPECT_NE(computes, sleeps);
  missing.site = "/t.py:14 in load";
  EXPECT_EQ(situation(9000), computes);
  missing.submitted += 1;
  EXPECT_NE(situation(9000), computes);
}

TEST(Verdict, SaysWhereItCannotAsk) {
  WorldFacts facts = World({Waits(0, kA, "a", {1}), std::nullopt});
  facts.hosts[1] = "";
  const std::optional<Verdict> verdict = Explain(facts, {}, 0);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->details, "  rank 1 is on another host, whose agent cannot be asked.\n");
  EXPECT_EQ(verdict->missing[0].found, RankClass::kUnreachable);
}

TEST(Verdict, SaysWhatARankElsewhereWaitsFor) {
  WorldFacts facts = World({Waits(0, kA, "a", {1}), Waits(1, kB, "b", {0})});
  facts.ranks[1]->waits[0].set = 2;
  facts.ranks[1]->site = "/t.py:7 in main";
  const std::optional<Verdict> verdict = Explain(facts, Never(facts), 0);
  ASSERT_TRUE(verdict);
  EXPECT_TRUE(verdict->never_ends);
  EXPECT_THAT(verdict->details,
              HasSubstr("is in another collective: it has waited 5 s in 'b' of process set 2 for "
                        "rank 0 to submit it at /t.py:7 in main;\n"
                        "    its last finished collective was number 6, 'before'"));
}

TEST(Verdict, PrefersTheCollectiveWhoseMissingRanksDoNotWait) {
  RankFacts longer = Waits(0, kA, "a", {1});
  longer.waits[0].waited_ms = 9000;
  const std::optional<Verdict> verdict =
      Explain(World({longer, Waits(1, kB, "b", {2}), Rank(2)}), {}, 0);
  ASSERT_TRUE(verdict);
  EXPECT_THAT(verdict->sentence, HasSubstr("in 'b' for rank 2"));
  EXPECT_FALSE(Explain(World({Rank(0), Rank(1)}), {}, 0));
  EXPECT_FALSE(Explain(World({Waits(0, kA, "a", {1}), Rank(1)}), {}, 6000)) << "not long enough";
}

// Rank 2 waits for rank 0, which arranges the work of all hosts; rank 1 knows of rank 2 alone.
TEST(Verdict, NamesTheRankAtTheEndOfAChainOfWaits) {
  for (const bool waits : {false, true}) {
    RankFacts stopped = waits ? Waits(0, kA, "a", {}) : Rank(0);
    stopped.state = "T";
    std::vector<std::optional<RankFacts>> ranks{stopped, Waits(1, kA, "a", {2}),
                                                Waits(2, kA, "a", {}), Waits(3, kA, "a", {})};
    for (size_t rank = 1; rank < ranks.size(); ++rank) ranks[rank]->waits[0].submitted = 1;
    const std::optional<Verdict> verdict = Explain(World(std::move(ranks)), {}, 0);
    ASSERT_TRUE(verdict);
    ASSERT_EQ(verdict->missing.size(), 1u);
    EXPECT_EQ(verdict->missing[0].rank, 0u);
    EXPECT_EQ(verdict->missing[0].found, RankClass::kStopped);
    EXPECT_THAT(verdict->details, HasSubstr("rank 0 on host h (pid 100) is stopped"));
  }
}

// No rank knows whom it waits for: rank 1 computes beside it, and rank 2 has not come to it at all.
TEST(Verdict, NamesAllThatDoNotWaitWhereNoRankIsKnownToBeAwaited) {
  RankFacts computes = Rank(1);
  computes.pending = {kA};
  RankFacts waits = Waits(0, kA, "a", {});
  waits.waits[0].submitted = 1;
  const std::optional<Verdict> verdict = Explain(World({waits, computes, Rank(2)}), {}, 0);
  ASSERT_TRUE(verdict);
  ASSERT_EQ(verdict->missing.size(), 2u);
  EXPECT_EQ(verdict->missing[0].rank, 1u);
  EXPECT_EQ(verdict->missing[1].rank, 2u);
}

// All wait for each other's data: no rank is to blame.
TEST(Verdict, NamesThoseThatAreWaitedForWhereAllWait) {
  std::vector<std::optional<RankFacts>> ranks{Waits(0, kA, "a", {1}), Waits(1, kA, "a", {})};
  for (auto& rank : ranks) rank->waits[0].submitted = 1;
  const std::optional<Verdict> verdict = Explain(World(std::move(ranks)), {}, 0);
  ASSERT_TRUE(verdict);
  ASSERT_EQ(verdict->missing.size(), 1u);
  EXPECT_EQ(verdict->missing[0].found, RankClass::kWorking);
}

TEST(Verdict, NamesNoRankThatHasSubmitted) {
  const WorldFacts facts =
      World({Waits(0, kA, "a", {2, 3}), Rank(1), Waits(2, kA, "a", {3}), Rank(3)});
  const std::optional<Verdict> verdict = Explain(facts, {}, 0);
  ASSERT_TRUE(verdict);
  EXPECT_THAT(verdict->sentence, HasSubstr("for rank 3 to submit it"));
  EXPECT_THAT(verdict->details, Not(HasSubstr("rank 2 on host")));
}

// ---- lines of the source

TEST(PythonSite, IsTheInnermostLineOfTheMainThreadThatIsNoLibrary) {
  EXPECT_EQ(PythonSite("Thread 0x00007f (most recent call first):\n"
                       "  File \"/usr/lib/python3.11/threading.py\", line 320 in wait\n"
                       "\n"
                       "Current thread 0x00008f (most recent call first):\n"
                       "  File \"/usr/lib/python3/dist-packages/numpy/a.py\", line 3 in dot\n"
                       "  File \"/home/u/my \\u00fcber, line 1/t.py\", line 12 in load\n"
                       "  File \"/home/u/t.py\", line 40 in <module>\n"),
            "/home/u/my \\u00fcber, line 1/t.py:12 in load");
  EXPECT_EQ(PythonSite("Current thread 0x00008f (most recent call first):\n"
                       "  File \"/usr/lib/python3.11/socket.py\", line 706 in readinto\n"),
            "/usr/lib/python3.11/socket.py:706 in readinto");
  EXPECT_EQ(PythonSite(""), "");
  EXPECT_EQ(PythonSite("  File \"\n  File \"x\", line\n\", line 3 in \n<truncated"), "");
}

TEST(PySpySite, IsTheSameLineOfTheThreadThatHasTheNumberOfTheProcess) {
  const std::string dump =
      "Process 31131: python train.py\n"
      "Python v3.11.7 (/usr/bin/python3.11)\n"
      "\n"
      "Thread 31189 (idle): \"other\"\n"
      "    f (/home/u/other.py:4)\n"
      "Thread 31131 (active): \"MainThread\"\n"
      "    Thread.run (/usr/lib/python3.11/threading.py:982)\n"
      "    Loader.load (/home/u/my files (2): new/t.py:12)\n"
      "    <module> (/home/u/t.py:40)\n"
      "Thread 31190 (idle)\n"
      "    g (/home/u/other.py:7)\n";
  EXPECT_EQ(PySpySite(dump, 31131), "/home/u/my files (2): new/t.py:12 in Loader.load");
  EXPECT_EQ(PySpySite(dump, 31189), "/home/u/other.py:4 in f");
  EXPECT_EQ(PySpySite(dump, 3113), "");
  EXPECT_EQ(PySpySite("", 1), "");
  EXPECT_EQ(PySpySite("Thread 1 (\n    \n    (:)\n    f (a\n    f (:1)\n", 1), "");
}

TEST(Verdict, WhereNobodyKnowsForWhomARankThatDoesNotWaitIsNamed) {
  RankFacts stopped = Rank(0);
  stopped.state = "T";
  const WorldFacts facts = World({stopped, Waits(1, kA, "a", {}), Waits(2, kA, "a", {})});
  const std::optional<Verdict> verdict = Explain(facts, {}, 0);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->sentence,
            "rank 1 has waited 5 s in 'a' for rank 0 to finish its part, as rank 2 does");
  ASSERT_EQ(verdict->missing.size(), 1U);
  EXPECT_EQ(verdict->missing[0].found, RankClass::kStopped);
}

}  // namespace
}  // namespace hvd
