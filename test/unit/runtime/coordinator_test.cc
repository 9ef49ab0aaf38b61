// The coordinator as a table of words in and words out, and as a world of seeded disorder.
#include "runtime/backends/hosts/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>

namespace hvd {
namespace {

using ::testing::HasSubstr;
using Answers = Coordinator::Answers;

Status Compare(std::string_view name, std::span<const HostDetail> details) {
  for (const HostDetail& d : details) {
    if (d.detail == details[0].detail) continue;
    return Mismatch(std::string(name) + ": rank " + std::to_string(details[0].rank) + " and rank " +
                    std::to_string(d.rank) + " differ");
  }
  return Status::Ok();
}

ReadyWords Ready(uint64_t ticket, std::string name,
                 Collective collective = Collective::kAllreduce) {
  ReadyWords words;
  words.ticket = ticket;
  words.name = std::move(name);
  words.collective = collective;
  words.fusion_key = collective == Collective::kAllreduce ? 7 : 0;
  words.parts = {{100, {}}};
  return words;
}

class CoordinatorTest : public ::testing::Test {
 protected:
  void Make(std::vector<uint32_t> host_of, CoordinatorOptions options = {}) {
    coordinator_.emplace(HostMap{std::move(host_of), 0}, Compare, options);
  }
  Answers Say(uint32_t from, Words words) {
    Answers answers;
    Status heard = coordinator_->Hear(from, std::move(words), now_, &answers);
    EXPECT_TRUE(heard.ok()) << heard.message();
    return answers;
  }
  static const RunWords& RunIn(const Answers& answers, size_t at = 0) {
    return std::get<RunWords>(answers.at(at).words);
  }
  static const EndWords& EndIn(const Answers& answers, size_t at = 0) {
    return std::get<EndWords>(answers.at(at).words);
  }

  TimePoint now_{};
  std::optional<Coordinator> coordinator_;
};

TEST_F(CoordinatorTest, RunsWhatAllHostsAreReadyFor) {
  Make({0, 0, 1, 1});
  EXPECT_TRUE(Say(2, Ready(5, "x")).empty());
  Answers answers = Say(0, Ready(9, "x"));
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].to, 0u);
  EXPECT_EQ(answers[1].to, 2u);
  EXPECT_EQ(RunIn(answers).leaders, (std::vector<uint32_t>{0, 2})) << "in order of hosts";
  EXPECT_EQ(RunIn(answers).entries[0].ticket, 9u);
  EXPECT_EQ(RunIn(answers, 1).entries[0].ticket, 5u);
  EXPECT_EQ(RunIn(answers).entries[0].participants, 4u);
}

TEST_F(CoordinatorTest, KeepsNamesSetsAndRoundsApart) {
  Make({0, 1, 2});
  ReadyWords pair = Ready(1, "x");
  pair.domain = 1;
  pair.ranks = {0, 1};
  EXPECT_TRUE(Say(0, pair).empty());
  EXPECT_TRUE(Say(1, Ready(1, "x")).empty()) << "the world's x is another one";
  EXPECT_TRUE(Say(2, Ready(1, "y")).empty());
  pair.ranks = {0, 2};
  EXPECT_TRUE(Say(2, pair).empty()) << "a number that was used again";
  EXPECT_TRUE(Say(1, Ready(2, "x")).empty()) << "the next round of the same name";
  EXPECT_TRUE(Say(0, Ready(2, "x")).empty());
  Answers answers = Say(2, Ready(3, "x"));
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(RunIn(answers, 1).entries[0].ticket, 1u) << "the older round of rank 1";
}

TEST_F(CoordinatorTest, GivesAllHostsTheSameOrder) {
  Make({0, 1}, {.fusion_bytes = 0});
  Say(0, Ready(1, "a"));
  Say(0, Ready(2, "b"));
  EXPECT_EQ(RunIn(Say(1, Ready(1, "b"))).number, 1u);
  EXPECT_EQ(RunIn(Say(1, Ready(2, "a"))).number, 2u);
}

TEST_F(CoordinatorTest, TellsAllHowTheyDisagree) {
  Make({0, 1});
  ReadyWords odd = Ready(4, "x");
  odd.detail = "[5]";
  Say(1, odd);
  Answers answers = Say(0, Ready(3, "x"));
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(EndIn(answers).status.code(), Code::kMismatch);
  EXPECT_EQ(EndIn(answers).status.message(), EndIn(answers, 1).status.message());
  EXPECT_THAT(EndIn(answers).status.message(), HasSubstr("rank 0 and rank 1 differ"));
  Say(0, Ready(5, "x"));
  EXPECT_EQ(RunIn(Say(1, Ready(6, "x"))).entries[0].ticket, 5u) << "the name is usable again";
}

TEST_F(CoordinatorTest, PassesOnTheFailureOfTheFirstHost) {
  Make({0, 1, 2});
  ReadyWords second = Ready(1, "x"), third = Ready(1, "x");
  second.failure = Mismatch("host 1 disagrees");
  third.failure = Mismatch("host 2 disagrees");
  Say(2, third);
  Say(1, second);
  Answers answers = Say(0, Ready(1, "x"));
  ASSERT_EQ(answers.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(EndIn(answers, i).status.message(), "host 1 disagrees");
}

TEST_F(CoordinatorTest, EndsABarrierWithoutABatch) {
  Make({0, 1});
  Say(0, Ready(1, "b", Collective::kBarrier));
  Answers answers = Say(1, Ready(2, "b", Collective::kBarrier));
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_TRUE(EndIn(answers).status.ok());
}

TEST_F(CoordinatorTest, FusesWhatBecomesReadyWhileEnoughIsUnderWay) {
  Make({0, 1}, {.fusion_bytes = 350});
  size_t runs = 0;
  for (uint64_t t = 1; t <= 8; ++t) {
    Say(0, Ready(t, "t" + std::to_string(t)));
    runs += Say(1, Ready(t, "t" + std::to_string(t))).size() / 2;
  }
  EXPECT_EQ(runs, 2u) << "two under way, six held";
  Answers answers = Say(0, DoneWords{1});
  ASSERT_EQ(answers.size(), 2u);
  ASSERT_EQ(RunIn(answers).entries.size(), 3u) << "300 of 350 bytes";
  EXPECT_EQ(RunIn(answers).entries[0].ticket, 3u);
  EXPECT_TRUE(Say(0, DoneWords{1}).empty()) << "said twice";
  EXPECT_EQ(RunIn(Say(0, DoneWords{2})).entries.size(), 3u);
}

TEST_F(CoordinatorTest, NeverFusesWhatDiffers) {
  Make({0, 1});
  for (uint64_t t = 1; t <= 5; ++t) {
    ReadyWords words = Ready(t, "t" + std::to_string(t));
    if (t == 4) words.fusion_key = 8;
    if (t == 5) words.fusion_key = 0;
    Say(0, words);
    Say(1, words);
  }
  EXPECT_EQ(RunIn(Say(0, DoneWords{1})).entries.size(), 1u);
  EXPECT_EQ(RunIn(Say(0, DoneWords{2})).entries.size(), 1u);
  EXPECT_EQ(RunIn(Say(0, DoneWords{3})).entries.size(), 1u);
}

TEST_F(CoordinatorTest, HoldsUpOnlyTheSameLeaders) {
  Make({0, 1, 2, 3});
  auto pair = [](uint64_t ticket, std::string name, std::vector<uint32_t> ranks) {
    ReadyWords words = Ready(ticket, std::move(name));
    words.domain = 1;
    words.ranks = std::move(ranks);
    return words;
  };
  for (uint64_t t = 1; t <= 4; ++t) {
    Say(0, pair(t, "t" + std::to_string(t), {0, 1}));
    Say(1, pair(t, "t" + std::to_string(t), {0, 1}));
  }
  Say(2, pair(1, "u", {2, 3}));
  EXPECT_EQ(Say(3, pair(1, "u", {2, 3})).size(), 2u) << "two are under way elsewhere";
}

TEST_F(CoordinatorTest, CountsAHostThatHasJoinedAsPresent) {
  Make({0, 0, 1, 1});
  Say(0, Ready(1, "x"));
  EXPECT_TRUE(Say(2, JoinWords{1, 3}).empty());
  Answers answers = Say(3, JoinWords{1, 3});
  ASSERT_EQ(answers.size(), 1u) << "the whole host has joined: x goes on without it";
  EXPECT_EQ(RunIn(answers).leaders, std::vector<uint32_t>{0});
  EXPECT_EQ(RunIn(answers).entries[0].participants, 2u);
  Answers refused = Say(0, Ready(2, "g", Collective::kAllgather));
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(EndIn(refused).status.code(), Code::kMismatch);
  EXPECT_THAT(EndIn(refused).status.message(), HasSubstr("ranks 2, 3"));
  Say(1, JoinWords{8, 1});
  Answers all = Say(0, JoinWords{9, 1});
  ASSERT_EQ(all.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(EndIn(all, i).last_joined, 1u);
  EXPECT_TRUE(Say(0, Ready(10, "x")).empty()) << "nobody counts as joined any more";
}

TEST_F(CoordinatorTest, DividesByThoseThatTakePart) {
  Make({0, 0, 1, 1});
  ReadyWords words = Ready(1, "x");
  words.joined = {3};
  Say(2, words);
  EXPECT_EQ(RunIn(Say(0, Ready(1, "x"))).entries[0].participants, 3u);
}

TEST_F(CoordinatorTest, TellsEachHostWhatItNeedsOfTheOthersExtents) {
  Make({0, 1, 0});  // a host's ranks need not be in a row
  ReadyWords here = Ready(1, "g", Collective::kAllgather), there = here;
  here.parts = {{0, {10, 30}}};  // ranks 0 and 2
  there.parts = {{0, {20}}};
  Say(0, here);
  EXPECT_EQ(RunIn(Say(1, there)).entries[0].extents[0], (std::vector<int64_t>{10, 20, 30}));
  here = there = Ready(2, "t", Collective::kAlltoall);
  here.parts = {{0, {1, 2, 3, 7, 8, 9}}};
  there.parts = {{0, {4, 5, 6}}};
  Say(0, here);
  Answers answers = Say(1, there);
  EXPECT_EQ(RunIn(answers, 0).entries[0].extents[0], (std::vector<int64_t>{1, 4, 7, 3, 6, 9}));
  EXPECT_EQ(RunIn(answers, 1).entries[0].extents[0], (std::vector<int64_t>{2, 5, 8}));
}

TEST_F(CoordinatorTest, FailsWhatNeedsARankThatLeft) {
  Make({0, 1, 2});
  Say(0, Ready(1, "x"));
  ReadyWords pair = Ready(1, "p");
  pair.domain = 1;
  pair.ranks = {0, 1};
  Say(1, pair);
  Answers answers = Say(2, LeaveWords{2});
  ASSERT_EQ(answers.size(), 2u) << "the leaver may go, x fails, p does not need it";
  EXPECT_EQ(std::get<FarewellWords>(answers[0].words).why, "");
  EXPECT_EQ(EndIn(answers, 1).status.code(), Code::kAborted);
  EXPECT_THAT(EndIn(answers, 1).status.message(), HasSubstr("rank 2 left the world"));
  EXPECT_THAT(EndIn(Say(1, Ready(2, "z"))).status.message(), HasSubstr("'z'")) << "later as well";
  pair.ticket = 7;
  EXPECT_EQ(RunIn(Say(0, pair)).entries[0].ticket, 7u);
}

TEST_F(CoordinatorTest, AWithdrawnTicketFailsTheOthersUnlessItRuns) {
  Make({0, 1, 2});
  Say(0, Ready(1, "x"));
  Say(1, Ready(2, "x"));
  Answers answers = Say(1, WithdrawWords{2, "rank 1 gave up 'x'"});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(EndIn(answers).status.message(), "rank 1 gave up 'x'");
  answers = Say(2, Ready(1, "x"));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(EndIn(answers).status.message(), "rank 1 gave up 'x'");
  Say(0, Ready(3, "x"));
  Say(1, Ready(3, "x"));
  EXPECT_EQ(Say(2, Ready(3, "x")).size(), 3u);
  EXPECT_TRUE(Say(1, WithdrawWords{3, "too late"}).empty());
}

TEST_F(CoordinatorTest, ClosingFailsWhatIsPending) {
  Make({0, 1});
  Say(1, Ready(1, "x"));
  Answers answers;
  coordinator_->Close("rank 0 left", &answers);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(EndIn(answers).status.code(), Code::kAborted);
  EXPECT_EQ(std::get<FarewellWords>(answers[1].words).why, "rank 0 left");
}

TEST_F(CoordinatorTest, NamesTheRanksThatStall) {
  Make({0, 0, 1, 1}, {.stall_warning = std::chrono::seconds(60)});
  Answers answers;
  Say(0, Ready(1, "x"));
  EXPECT_TRUE(coordinator_->Stalls(now_ + std::chrono::seconds(59), &answers).empty());
  std::vector<std::string> sentences =
      coordinator_->Stalls(now_ + std::chrono::seconds(61), &answers);
  ASSERT_EQ(sentences.size(), 1u);
  EXPECT_THAT(sentences[0], HasSubstr("'x' has waited 61 s for the host of ranks 2, 3"));
  EXPECT_TRUE(coordinator_->Stalls(now_ + std::chrono::seconds(62), &answers).empty())
      << "once a minute";
}

// What a host has reported it takes part in, also where its ranks have joined since.
TEST_F(CoordinatorTest, WhoJoinsAfterItsHostWasReadyTakesPart) {
  for (Collective collective : {Collective::kAllgather, Collective::kBroadcast}) {
    Make({0, 1, 1});
    Say(1, Ready(1, "x", collective));
    Say(1, JoinWords{2, 2});
    Say(2, JoinWords{1, 2});
    Answers answers = Say(0, Ready(1, "x", collective));
    ASSERT_EQ(answers.size(), 2u);
    EXPECT_EQ(RunIn(answers).entries[0].participants, 3u);
  }
}

TEST_F(CoordinatorTest, AJoinAfterARankHasLeftFailsLikeOneBefore) {
  Make({0, 1, 1});
  Say(0, JoinWords{1, 0});
  Answers before = Say(2, LeaveWords{2});
  ASSERT_EQ(before.size(), 2u) << "the farewell, and the end of the join";
  Answers after = Say(1, JoinWords{1, 1});
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].to, 1u);
  EXPECT_EQ(EndIn(after).status.message(), EndIn(before, 1).status.message());
  EXPECT_THAT(EndIn(after).status.message(), HasSubstr("rank 2 left the world"));
}

TEST_F(CoordinatorTest, WhatWaitsForItsOwnRankSaysSoWhenThatLeaves) {
  Make({0, 1, 2});
  Say(1, Ready(1, "x"));
  ReadyWords others = Ready(2, "y");
  others.ranks = {1, 2};
  Say(1, others);
  Answers answers;
  coordinator_->Close("the coordinator left", &answers);
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_THAT(EndIn(answers, 0).status.message(),
              HasSubstr("rank 0 left the world before it took part in 'x'"));
  EXPECT_EQ(EndIn(answers, 1).status.message(), "the coordinator left");
}

TEST_F(CoordinatorTest, TellsLeadersWhomTheyWaitFor) {
  constexpr Duration kLong = std::chrono::seconds(30);
  Make({0, 1, 2, 2}, {.stall_warning = Duration(0), .tell_awaited = kLong});
  Answers answers;
  Say(0, Ready(7, "x"));
  coordinator_->Stalls(now_ + kLong - Duration(1), &answers);
  EXPECT_TRUE(answers.empty()) << "too early";
  coordinator_->Stalls(now_ + kLong, &answers);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].to, 0u);
  EXPECT_EQ(std::get<WaitWords>(answers[0].words), (WaitWords{7, {1, 2, 3}}));
  answers.clear();
  coordinator_->Stalls(now_ + 2 * kLong, &answers);
  EXPECT_TRUE(answers.empty()) << "nothing has changed";
  Say(1, Ready(9, "x"));
  coordinator_->Stalls(now_ + 2 * kLong, &answers);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(std::get<WaitWords>(answers[0].words), (WaitWords{7, {2, 3}}));
  EXPECT_EQ(std::get<WaitWords>(answers[1].words), (WaitWords{9, {2, 3}}));
}

TEST_F(CoordinatorTest, RefusesWhatOnlyACoordinatorSays) {
  Make({0, 1});
  Answers answers;
  EXPECT_FALSE(coordinator_->Hear(1, RunWords{}, now_, &answers).ok());
  EXPECT_FALSE(coordinator_->Hear(9, LeaveWords{0}, now_, &answers).ok()) << "an unknown rank";
  ReadyWords outside = Ready(1, "x");
  outside.ranks = {0, 77};
  EXPECT_EQ(EndIn(Say(1, outside)).status.code(), Code::kInvalidArgument);
}

// Hosts that submit the same tensors in orders of their own, several rounds: each ticket is answered once, and all hosts
// get the same batches in the same order.
TEST_F(CoordinatorTest, EverySeedEndsWithTheSameOrderEverywhere) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    const uint32_t hosts = 2 + seed % 4;
    std::vector<uint32_t> host_of(hosts);
    for (uint32_t h = 0; h < hosts; ++h) host_of[h] = h;
    Make(host_of, {.fusion_bytes = seed % 3 * 250u});
    std::vector<std::vector<std::string>> to_say(hosts);
    for (auto& names : to_say) {
      for (int round = 0; round < 3; ++round) {
        std::vector<std::string> once{"a", "b", "c", "d", "e", "f"};
        std::shuffle(once.begin(), once.end(), random);
        names.insert(names.end(), once.begin(), once.end());
      }
    }
    std::vector<std::map<uint64_t, std::string>> open(hosts);
    std::vector<std::vector<std::string>> done(hosts);
    std::vector<uint64_t> tickets(hosts, 0), last(hosts, 0);
    std::deque<Coordinator::Answer> late;
    auto take = [&](Answers answers) {
      for (auto& answer : answers) late.push_back(std::move(answer));
    };
    for (;;) {
      std::vector<uint32_t> can;
      for (uint32_t h = 0; h < hosts; ++h) {
        if (to_say[h].empty()) continue;
        const std::string& next = to_say[h].front();
        // One in flight per name, as the engine sees to.
        const bool busy = std::any_of(open[h].begin(), open[h].end(),
                                      [&](const auto& o) { return o.second == next; });
        if (!busy) can.push_back(h);
      }
      if (can.empty() && late.empty()) break;
      if (!late.empty() && (can.empty() || random() % 3 == 0)) {
        Coordinator::Answer answer = std::move(late.front());
        late.pop_front();
        const auto& run = std::get<RunWords>(answer.words);
        EXPECT_GT(run.number, last[answer.to]);
        last[answer.to] = run.number;
        for (const RunEntry& entry : run.entries) {
          ASSERT_EQ(open[answer.to].count(entry.ticket), 1u) << "seed " << seed;
          done[answer.to].push_back(open[answer.to][entry.ticket]);
          open[answer.to].erase(entry.ticket);
        }
        if (answer.to == run.leaders[0]) take(Say(answer.to, DoneWords{run.number}));
        continue;
      }
      const uint32_t h = can[random() % can.size()];
      const std::string name = to_say[h].front();
      to_say[h].erase(to_say[h].begin());
      open[h][++tickets[h]] = name;
      take(Say(h, Ready(tickets[h], name)));
    }
    for (uint32_t h = 0; h < hosts; ++h) {
      EXPECT_EQ(done[h].size(), 18u) << "seed " << seed;
      EXPECT_EQ(done[h], done[0]) << "seed " << seed;
    }
  }
}

// ---- words

TEST_F(CoordinatorTest, WhatALeaderWithdrawsBesideItsJoinFailsForThoseWhoReportLater) {
  for (bool join_first : {true, false}) {
    Make({0, 1, 2});
    EXPECT_TRUE(Say(1, Ready(5, "x")).empty());
    if (join_first) {
      EXPECT_TRUE(Say(1, JoinWords{6, 1}).empty());
    }
    Answers answers = Say(1, WithdrawWords{5, "rank 1 leaves"});
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(EndIn(answers).ticket, 5u);
    if (!join_first) {
      EXPECT_TRUE(Say(1, JoinWords{6, 1}).empty());
    }
    for (uint32_t later : {0u, 2u}) {
      answers = Say(later, Ready(9, "x"));
      ASSERT_EQ(answers.size(), 1u) << "not as if rank 1 had brought nothing";
      EXPECT_EQ(answers[0].to, later);
      EXPECT_THAT(EndIn(answers).status.message(), HasSubstr("rank 1 leaves"));
    }
    EXPECT_TRUE(Say(0, Ready(10, "x")).empty()) << "the next round is a new one";
    answers = Say(2, Ready(10, "x"));
    ASSERT_EQ(answers.size(), 2u);
    EXPECT_EQ(RunIn(answers).leaders, (std::vector<uint32_t>{0, 2}));
  }
}

TEST_F(CoordinatorTest, WhoHasJoinedIsNotAwaitedThoughTheJoinHasFailed) {
  Make({0, 1, 2});
  ReadyWords pair = Ready(1, "x");
  pair.domain = 1;
  pair.ranks = {0, 1};
  EXPECT_TRUE(Say(1, JoinWords{6, 1}).empty());
  EXPECT_FALSE(Say(2, LeaveWords{2}).empty()) << "the join cannot succeed any more";
  Answers answers = Say(0, pair);
  ASSERT_EQ(answers.size(), 1u) << "rank 1 submits nothing more";
  EXPECT_EQ(RunIn(answers).leaders, (std::vector<uint32_t>{0}));
}

TEST(Words, ComeBackAsTheyWereSaid) {
  ReadyWords ready = Ready(77, "layer/1");
  ready.domain = -2;
  ready.ranks = {1, 5};
  ready.joined = {5};
  ready.detail = std::string("d\0d", 3);
  ready.parts = {{4, {1, -2}}, {8, {}}};
  ready.failure = Mismatch("no");
  Result<Words> back = DecodeWords(EncodeWords(ready));
  ASSERT_TRUE(back.ok());
  const auto& got = std::get<ReadyWords>(*back);
  EXPECT_EQ(got.ticket, 77u);
  EXPECT_EQ(got.domain, -2);
  EXPECT_EQ(got.ranks, ready.ranks);
  EXPECT_EQ(got.joined, ready.joined);
  EXPECT_EQ(got.detail, ready.detail);
  EXPECT_EQ(got.parts, ready.parts);
  EXPECT_EQ(got.failure.code(), Code::kMismatch);
  RunWords run{3, {0, 4}, {0, 1}, {{7, 5, {{1, 2}, {}}}, {8, 5, {}}}};
  EXPECT_EQ(std::get<RunWords>(*DecodeWords(EncodeWords(run))), run);
  EndWords end{9, Aborted("x left"), 12};
  Result<Words> ended = DecodeWords(EncodeWords(end));
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(std::get<EndWords>(*ended).last_joined, 12u);
  EXPECT_EQ(std::get<EndWords>(*ended).status.message(), "x left");
  for (const Words& words :
       {Words(WithdrawWords{1, "w"}), Words(JoinWords{2, 3}), Words(LeaveWords{4}),
        Words(DoneWords{5}), Words(FarewellWords{"bye"})}) {
    Result<Words> heard = DecodeWords(EncodeWords(words));
    ASSERT_TRUE(heard.ok());
    EXPECT_EQ(EncodeWords(*heard), EncodeWords(words));
  }
}

TEST(Words, DamagedOnesAreRefused) {
  RunWords run{3, {0, 4}, {0, 1}, {{7, 5, {{1, 2}, {}}}}};
  const std::string whole = EncodeWords(run);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(DecodeWords(whole.substr(0, bytes)).ok()) << bytes;
  }
  EXPECT_FALSE(DecodeWords(whole + "x").ok());
  EXPECT_FALSE(DecodeWords("\xff").ok());
  std::string huge = whole;
  huge[9] = huge[10] = huge[11] = huge[12] = '\x7f';  // the number of leaders
  EXPECT_FALSE(DecodeWords(huge).ok()) << "a length beyond the message takes no memory";
}

}  // namespace
}  // namespace hvd
