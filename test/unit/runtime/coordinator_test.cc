// The coordinator as a table of words in and words out, and as a world of seeded disorder.
#include "runtime/backends/hosts/coordination/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>

#include "runtime/base/text/hex_text.h"
#include "runtime/base/travels_alone.h"

namespace hvd {
namespace {

using ::testing::ElementsAre;
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

ReadyMessage Ready(uint64_t ticket, std::string name,
                   Collective collective = Collective::kAllreduce) {
  ReadyMessage msg;
  msg.ticket = ticket;
  msg.name = std::move(name);
  msg.collective = collective;
  msg.fusion_key = collective == Collective::kAllreduce ? 7 : 0;
  msg.parts = {{100, {}}};
  return msg;
}

class CoordinatorTest : public ::testing::Test {
 protected:
  void Make(std::vector<uint32_t> host_of, CoordinatorOptions options = {}) {
    coordinator_.emplace(HostMap{std::move(host_of), 0}, Compare, options);
  }
  Answers Send(uint32_t from, Coordination msg) {
    Answers answers;
    Status heard = coordinator_->Receive(from, std::move(msg), now_, &answers);
    EXPECT_TRUE(heard.ok()) << heard.message();
    return answers;
  }
  static const RunMessage& RunIn(const Answers& answers, size_t at = 0) {
    return std::get<RunMessage>(answers.at(at).msg);
  }
  static ReadyMessage With(ReadyMessage ready, std::string sum) {
    ready.sum = std::move(sum);
    return ready;
  }
  static const RunMessage& SumsIn(const Answers& answers, size_t at = 0) {
    return std::get<SumsMessage>(answers.at(at).msg).run;
  }
  static const EndMessage& EndIn(const Answers& answers, size_t at = 0) {
    return std::get<EndMessage>(answers.at(at).msg);
  }

  TimePoint now_{};
  std::optional<Coordinator> coordinator_;
};

TEST_F(CoordinatorTest, RunsWhatAllHostsAreReadyFor) {
  Make({0, 0, 1, 1});
  EXPECT_TRUE(Send(2, Ready(5, "x")).empty());
  Answers answers = Send(0, Ready(9, "x"));
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].to, 0u);
  EXPECT_EQ(answers[1].to, 2u);
  EXPECT_EQ(RunIn(answers).leaders, std::vector<uint32_t>{}) << "the first members";
  EXPECT_EQ(RunIn(answers).entries[0].ticket, 9u);
  EXPECT_EQ(RunIn(answers, 1).entries[0].ticket, 5u);
  EXPECT_EQ(RunIn(answers).entries[0].participants, 4u);
}

TEST_F(CoordinatorTest, KeepsNamesSetsAndRoundsApart) {
  Make({0, 1, 2});
  ReadyMessage pair = Ready(1, "x");
  pair.domain = 1;
  pair.ranks = {0, 1};
  EXPECT_TRUE(Send(0, pair).empty());
  EXPECT_TRUE(Send(1, Ready(1, "x")).empty()) << "the world's x is another one";
  EXPECT_TRUE(Send(2, Ready(1, "y")).empty());
  pair.ranks = {0, 2};
  EXPECT_TRUE(Send(2, pair).empty()) << "a number that was used again";
  EXPECT_TRUE(Send(1, Ready(2, "x")).empty()) << "the next round of the same name";
  EXPECT_TRUE(Send(0, Ready(2, "x")).empty());
  Answers answers = Send(2, Ready(3, "x"));
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(RunIn(answers, 1).entries[0].ticket, 1u) << "the older round of rank 1";
}

TEST_F(CoordinatorTest, GivesAllHostsTheSameOrder) {
  Make({0, 1}, {.fusion_bytes = 0});
  Send(0, Ready(1, "a"));
  Send(0, Ready(2, "b"));
  EXPECT_EQ(RunIn(Send(1, Ready(1, "b"))).number, 1u);
  EXPECT_EQ(RunIn(Send(1, Ready(2, "a"))).number, 2u);
}

TEST_F(CoordinatorTest, TellsAllHowTheyDisagree) {
  Make({0, 1});
  ReadyMessage odd = Ready(4, "x");
  odd.detail = "[5]";
  Send(1, odd);
  Answers answers = Send(0, Ready(3, "x"));
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(EndIn(answers).status.code(), Code::kMismatch);
  EXPECT_EQ(EndIn(answers).status.message(), EndIn(answers, 1).status.message());
  EXPECT_THAT(EndIn(answers).status.message(), HasSubstr("rank 0 and rank 1 differ"));
  Send(0, Ready(5, "x"));
  EXPECT_EQ(RunIn(Send(1, Ready(6, "x"))).entries[0].ticket, 5u) << "the name is usable again";
}

TEST_F(CoordinatorTest, PassesOnTheFailureOfTheFirstHost) {
  Make({0, 1, 2});
  ReadyMessage second = Ready(1, "x"), third = Ready(1, "x");
  second.failure = Mismatch("host 1 disagrees");
  third.failure = Mismatch("host 2 disagrees");
  Send(2, third);
  Send(1, second);
  Answers answers = Send(0, Ready(1, "x"));
  ASSERT_EQ(answers.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(EndIn(answers, i).status.message(), "host 1 disagrees");
}

TEST_F(CoordinatorTest, EndsABarrierWithoutABatch) {
  Make({0, 1});
  Send(0, Ready(1, "b", Collective::kBarrier));
  Answers answers = Send(1, Ready(2, "b", Collective::kBarrier));
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_TRUE(EndIn(answers).status.ok());
}

TEST_F(CoordinatorTest, FusesWhatBecomesReadyWhileEnoughIsInFlight) {
  Make({0, 1}, {.fusion_bytes = 350});
  size_t runs = 0;
  for (uint64_t t = 1; t <= 8; ++t) {
    Send(0, Ready(t, "t" + std::to_string(t)));
    runs += Send(1, Ready(t, "t" + std::to_string(t))).size() / 2;
  }
  EXPECT_EQ(runs, 2u) << "two under way, six held";
  Answers answers = Send(0, DoneMessage{1});
  ASSERT_EQ(answers.size(), 2u);
  ASSERT_EQ(RunIn(answers).entries.size(), 3u) << "300 of 350 bytes";
  EXPECT_EQ(RunIn(answers).entries[0].ticket, 3u);
  EXPECT_TRUE(Send(0, DoneMessage{1}).empty()) << "said twice";
  EXPECT_EQ(RunIn(Send(0, DoneMessage{2})).entries.size(), 3u);
}

TEST_F(CoordinatorTest, FusesUpToTheLimitAndNotAByteMore) {
  for (uint64_t limit : {299, 300}) {
    Make({0, 1}, {.fusion_bytes = limit});
    for (uint64_t t = 1; t <= 5; ++t) {
      Send(0, Ready(t, "t" + std::to_string(t)));
      Send(1, Ready(t, "t" + std::to_string(t)));
    }
    EXPECT_EQ(RunIn(Send(0, DoneMessage{1})).entries.size(), limit / 100) << limit;
  }
}

// It keeps a connection busy by itself: copies into one message and out of it would be in vain.
TEST_F(CoordinatorTest, ALargeTensorTravelsAlone) {
  Make({0, 1}, {.fusion_bytes = 64 << 20});
  const std::vector<uint64_t> sizes = {
      100, 100, 100, kTravelsAloneBytes, 100, 100, kTravelsAloneBytes - 1};
  for (uint64_t ticket = 0; ticket < sizes.size(); ++ticket) {
    ReadyMessage ready = Ready(ticket, "t" + std::to_string(ticket));
    ready.parts[0].bytes = sizes[ticket];
    Send(0, ready);
    Send(1, ready);
  }
  std::vector<size_t> together;
  for (uint64_t batch = 1; together.size() < 3; ++batch) {
    together.push_back(RunIn(Send(0, DoneMessage{batch})).entries.size());
  }
  EXPECT_THAT(together, ElementsAre(1, 1, 3));
}

TEST_F(CoordinatorTest, TellsAllLeadersAlikeHowToCutSumsWhileThatChanges) {
  TunedSettings tuned{};
  Make({0, 1}, {.cut = {.piece_kib = 512, .pieces = 3}, .tuned = &tuned});
  const auto expect = [&](uint64_t ticket, const SumCut& cut) {
    Send(0, Ready(ticket, "t" + std::to_string(ticket)));
    const Answers answers = Send(1, Ready(ticket, "t" + std::to_string(ticket)));
    ASSERT_EQ(answers.size(), 2u);
    for (size_t leader : {0, 1}) EXPECT_EQ(RunIn(answers, leader).cut, cut) << leader;
  };
  expect(1, {512, 3, 0, 256});
  tuned.stripes = 4 + 1;
  expect(2, {512, 3, 4, 256});
}

// With three, a sum that waits for a late host could hold up reports about work with the third.
TEST_F(CoordinatorTest, OnlyBetweenTwoHostsSumsNeedNoLeave) {
  Make({0, 0, 1});
  Send(0, Ready(1, "x"));
  EXPECT_EQ(RunIn(Send(2, Ready(1, "x"))).cut.eager_kib, 256u);
  Make({0, 1, 2});
  Send(0, Ready(1, "x"));
  Send(1, Ready(1, "x"));
  EXPECT_EQ(RunIn(Send(2, Ready(1, "x"))).cut.eager_kib, 0u);
}

TEST_F(CoordinatorTest, AnswersWithWhatTheOthersHaveOffered) {
  Make({0, 1, 2});
  EXPECT_TRUE(Send(2, OfferMessage{With(Ready(5, "x"), "two")}).empty());
  EXPECT_TRUE(Send(0, OfferMessage{With(Ready(9, "x"), "nil")}).empty());
  Answers answers = Send(1, OfferMessage{With(Ready(7, "x"), "one")});
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(SumsIn(answers).sums, (std::vector<MessageBytes>{"", "one", "two"}));
  EXPECT_EQ(SumsIn(answers, 1).sums, (std::vector<MessageBytes>{"nil", "", "two"}));
  EXPECT_EQ(SumsIn(answers, 2).sums, (std::vector<MessageBytes>{"nil", "one", ""}));
  EXPECT_EQ(SumsIn(answers, 2).entries[0].ticket, 5u);
  EXPECT_EQ(SumsIn(answers, 2).entries[0].participants, 3u);
}

TEST_F(CoordinatorTest, LetsLeadersExchangeWhatNotAllHaveOffered) {
  Make({0, 1});
  Send(0, OfferMessage{With(Ready(1, "x"), "nil")});
  EXPECT_THAT(RunIn(Send(1, Ready(1, "x"))).sums, ::testing::IsEmpty());
  Send(0, OfferMessage{With(Ready(2, "y"), "nil")});
  EXPECT_THAT(RunIn(Send(1, OfferMessage{With(Ready(2, "y"), "long")})).sums, ::testing::IsEmpty());
}

TEST_F(CoordinatorTest, LetsLeadersExchangeWhatTravelsTogether) {
  Make({0, 1});
  for (uint64_t t = 1; t <= 4; ++t) {
    Send(1, OfferMessage{With(Ready(t, "t" + std::to_string(t)), "one")});
    Send(0, OfferMessage{With(Ready(t, "t" + std::to_string(t)), "nil")});
  }
  Answers answers = Send(0, DoneMessage{1});
  ASSERT_EQ(RunIn(answers).entries.size(), 2u);
  EXPECT_THAT(RunIn(answers).sums, ::testing::IsEmpty());
}

TEST_F(CoordinatorTest, AnOfferThatIsWithdrawnFailsTheOthers) {
  Make({0, 1});
  Send(1, OfferMessage{With(Ready(1, "x"), "one")});
  Send(1, WithdrawMessage{1, "given up"});
  Answers answers = Send(0, OfferMessage{With(Ready(1, "x"), "nil")});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(EndIn(answers).status.message(), "given up");
}

TEST_F(CoordinatorTest, NeverFusesWhatDiffers) {
  Make({0, 1});
  for (uint64_t t = 1; t <= 5; ++t) {
    ReadyMessage msg = Ready(t, "t" + std::to_string(t));
    if (t == 4) msg.fusion_key = 8;
    if (t == 5) msg.fusion_key = 0;
    Send(0, msg);
    Send(1, msg);
  }
  EXPECT_EQ(RunIn(Send(0, DoneMessage{1})).entries.size(), 1u);
  EXPECT_EQ(RunIn(Send(0, DoneMessage{2})).entries.size(), 1u);
  EXPECT_EQ(RunIn(Send(0, DoneMessage{3})).entries.size(), 1u);
}

TEST_F(CoordinatorTest, HoldsUpOnlyTheSameLeaders) {
  Make({0, 1, 2, 3});
  auto pair = [](uint64_t ticket, std::string name, std::vector<uint32_t> ranks) {
    ReadyMessage msg = Ready(ticket, std::move(name));
    msg.domain = 1;
    msg.ranks = std::move(ranks);
    return msg;
  };
  for (uint64_t t = 1; t <= 4; ++t) {
    Send(0, pair(t, "t" + std::to_string(t), {0, 1}));
    Send(1, pair(t, "t" + std::to_string(t), {0, 1}));
  }
  Send(2, pair(1, "u", {2, 3}));
  EXPECT_EQ(Send(3, pair(1, "u", {2, 3})).size(), 2u) << "two are under way elsewhere";
}

TEST_F(CoordinatorTest, CountsAHostThatHasJoinedAsPresent) {
  Make({0, 0, 1, 1});
  Send(0, Ready(1, "x"));
  EXPECT_TRUE(Send(2, JoinMessage{1, 3}).empty());
  Answers answers = Send(3, JoinMessage{1, 3});
  ASSERT_EQ(answers.size(), 1u) << "the whole host has joined: x goes on without it";
  EXPECT_EQ(RunIn(answers).leaders, std::vector<uint32_t>{0}) << "not the usual ones";
  EXPECT_EQ(RunIn(answers).entries[0].participants, 2u);
  Answers refused = Send(0, Ready(2, "g", Collective::kAllgather));
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(EndIn(refused).status.code(), Code::kMismatch);
  EXPECT_THAT(EndIn(refused).status.message(), HasSubstr("ranks 2, 3"));
  Send(1, JoinMessage{8, 1});
  Answers all = Send(0, JoinMessage{9, 1});
  ASSERT_EQ(all.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(EndIn(all, i).last_joined, 1u);
  EXPECT_TRUE(Send(0, Ready(10, "x")).empty()) << "nobody counts as joined any more";
}

TEST_F(CoordinatorTest, DividesByThoseThatTakePart) {
  Make({0, 0, 1, 1});
  ReadyMessage msg = Ready(1, "x");
  msg.joined = {3};
  Send(2, msg);
  EXPECT_EQ(RunIn(Send(0, Ready(1, "x"))).entries[0].participants, 3u);
}

TEST_F(CoordinatorTest, TellsEachHostWhatItNeedsOfTheOthersExtents) {
  Make({0, 1, 0});  // a host's ranks need not be in a row
  ReadyMessage here = Ready(1, "g", Collective::kAllgather), there = here;
  here.parts = {{0, {10, 30}}};  // ranks 0 and 2
  there.parts = {{0, {20}}};
  Send(0, here);
  EXPECT_EQ(RunIn(Send(1, there)).entries[0].extents[0], (std::vector<int64_t>{10, 20, 30}));
  here = there = Ready(2, "t", Collective::kAlltoall);
  here.parts = {{0, {1, 2, 3, 7, 8, 9}}};
  there.parts = {{0, {4, 5, 6}}};
  Send(0, here);
  Answers answers = Send(1, there);
  EXPECT_EQ(RunIn(answers, 0).entries[0].extents[0], (std::vector<int64_t>{1, 4, 7, 3, 6, 9}));
  EXPECT_EQ(RunIn(answers, 1).entries[0].extents[0], (std::vector<int64_t>{2, 5, 8}));
}

TEST_F(CoordinatorTest, FailsWhatNeedsARankThatLeft) {
  Make({0, 1, 2});
  Send(0, Ready(1, "x"));
  ReadyMessage pair = Ready(1, "p");
  pair.domain = 1;
  pair.ranks = {0, 1};
  Send(1, pair);
  Answers answers = Send(2, LeaveMessage{2});
  ASSERT_EQ(answers.size(), 2u) << "the leaver may go, x fails, p does not need it";
  EXPECT_EQ(std::get<AbortNotice>(answers[0].msg).why, "");
  EXPECT_EQ(EndIn(answers, 1).status.code(), Code::kAborted);
  EXPECT_THAT(EndIn(answers, 1).status.message(), HasSubstr("rank 2 left the world"));
  EXPECT_THAT(EndIn(Send(1, Ready(2, "z"))).status.message(), HasSubstr("'z'")) << "later as well";
  pair.ticket = 7;
  EXPECT_EQ(RunIn(Send(0, pair)).entries[0].ticket, 7u);
}

// A rank that has had its farewell may be gone, and a message to it would end the work of all.
TEST_F(CoordinatorTest, ARankThatLeftHearsNothingMore) {
  Make({0, 1, 2});
  Send(0, Ready(1, "x"));
  Send(2, Ready(2, "x"));
  Send(2, JoinMessage{3, 2});
  Answers answers = Send(2, LeaveMessage{2});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].to, 2u);
  EXPECT_EQ(std::get<AbortNotice>(answers[0].msg).why, "");
  EXPECT_EQ(answers[1].to, 0u);
  EXPECT_THAT(EndIn(answers, 1).status.message(), HasSubstr("rank 2 left the world"));
}

TEST_F(CoordinatorTest, WhatIsHeldFailsWhenALeaderOfItLeaves) {
  Make({0, 1});
  for (uint64_t ticket = 1; ticket <= 3; ++ticket) {
    const std::string name = "x" + std::to_string(ticket);
    Send(0, Ready(ticket, name));
    EXPECT_EQ(Send(1, Ready(ticket, name)).size(), ticket < 3 ? 2u : 0u) << "two are enough";
  }
  Answers answers = Send(1, LeaveMessage{1});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[1].to, 0u);
  EXPECT_EQ(EndIn(answers, 1).ticket, 3u);
  EXPECT_THAT(EndIn(answers, 1).status.message(), HasSubstr("rank 1 left the world"));
  EXPECT_TRUE(Send(0, DoneMessage{1}).empty());
}

TEST_F(CoordinatorTest, TicketsOfTwoLeadersAreTwoOperations) {
  Make({0, 1});
  EXPECT_TRUE(Send(0, Ready(5, "a")).empty());
  EXPECT_TRUE(Send(1, Ready(5, "b")).empty());
  Send(1, WithdrawMessage{5, "rank 1 gave up 'b'"});
  Answers answers = Send(1, Ready(6, "a"));
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(RunIn(answers).entries[0].ticket, 5u);
  answers = Send(0, Ready(6, "b"));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_THAT(EndIn(answers).status.message(), HasSubstr("gave up 'b'"));
}

TEST_F(CoordinatorTest, ABarrierGoesOnWithoutARankThatHasJoined) {
  Make({0, 1});
  EXPECT_TRUE(Send(1, JoinMessage{1, 1}).empty());
  Answers answers = Send(0, Ready(1, "b", Collective::kBarrier));
  ASSERT_FALSE(answers.empty());
  EXPECT_TRUE(std::holds_alternative<EndMessage>(answers[0].msg));
  EXPECT_TRUE(EndIn(answers).status.ok()) << EndIn(answers).status.message();
}

TEST_F(CoordinatorTest, AWithdrawnTicketFailsTheOthersUnlessItRuns) {
  Make({0, 1, 2});
  Send(0, Ready(1, "x"));
  Send(1, Ready(2, "x"));
  Answers answers = Send(1, WithdrawMessage{2, "rank 1 gave up 'x'"});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(EndIn(answers).status.message(), "rank 1 gave up 'x'");
  answers = Send(2, Ready(1, "x"));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(EndIn(answers).status.message(), "rank 1 gave up 'x'");
  Send(0, Ready(3, "x"));
  Send(1, Ready(3, "x"));
  EXPECT_EQ(Send(2, Ready(3, "x")).size(), 3u);
  EXPECT_TRUE(Send(1, WithdrawMessage{3, "too late"}).empty());
}

TEST_F(CoordinatorTest, ClosingFailsWhatIsPending) {
  Make({0, 1});
  Send(1, Ready(1, "x"));
  Answers answers;
  coordinator_->Close("rank 0 left", &answers);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(EndIn(answers).status.code(), Code::kAborted);
  EXPECT_EQ(std::get<AbortNotice>(answers[1].msg).why, "rank 0 left");
}

TEST_F(CoordinatorTest, NamesTheRanksThatStall) {
  Make({0, 0, 1, 1}, {.stall_warning = std::chrono::seconds(60)});
  Answers answers;
  Send(0, Ready(1, "x"));
  EXPECT_TRUE(coordinator_->Stalls(now_ + std::chrono::seconds(59), &answers).empty());
  std::vector<std::string> sentences =
      coordinator_->Stalls(now_ + std::chrono::seconds(61), &answers);
  ASSERT_EQ(sentences.size(), 1u);
  EXPECT_THAT(sentences[0], HasSubstr("'x' has waited 61 s for the host of ranks 2, 3"));
  EXPECT_TRUE(coordinator_->Stalls(now_ + std::chrono::seconds(62), &answers).empty())
      << "once a minute";
}

// A host takes part in an operation that it has reported, also where its ranks have joined since.
TEST_F(CoordinatorTest, WhoJoinsAfterItsHostWasReadyTakesPart) {
  for (Collective collective : {Collective::kAllgather, Collective::kBroadcast}) {
    Make({0, 1, 1});
    Send(1, Ready(1, "x", collective));
    Send(1, JoinMessage{2, 2});
    Send(2, JoinMessage{1, 2});
    Answers answers = Send(0, Ready(1, "x", collective));
    ASSERT_EQ(answers.size(), 2u);
    EXPECT_EQ(RunIn(answers).entries[0].participants, 3u);
  }
}

TEST_F(CoordinatorTest, AJoinAfterARankHasLeftFailsLikeOneBefore) {
  Make({0, 1, 1});
  Send(0, JoinMessage{1, 0});
  Answers before = Send(2, LeaveMessage{2});
  ASSERT_EQ(before.size(), 2u) << "the farewell, and the end of the join";
  Answers after = Send(1, JoinMessage{1, 1});
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].to, 1u);
  EXPECT_EQ(EndIn(after).status.message(), EndIn(before, 1).status.message());
  EXPECT_THAT(EndIn(after).status.message(), HasSubstr("rank 2 left the world"));
}

TEST_F(CoordinatorTest, WhatWaitsForItsOwnRankSaysSoWhenThatLeaves) {
  Make({0, 1, 2});
  Send(1, Ready(1, "x"));
  ReadyMessage others = Ready(2, "y");
  others.ranks = {1, 2};
  Send(1, others);
  Answers answers;
  coordinator_->Close("the coordinator left", &answers);
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_THAT(EndIn(answers, 0).status.message(),
              HasSubstr("rank 0 left the world before it took part in 'x'"));
  EXPECT_EQ(EndIn(answers, 1).status.message(), "the coordinator left");
}

TEST_F(CoordinatorTest, TellsLeadersWhomTheyWaitFor) {
  constexpr Duration kLong = std::chrono::seconds(30);
  Make({0, 1, 2, 2}, {.stall_warning = Duration(0), .report_awaited_after = kLong});
  Answers answers;
  Send(0, Ready(7, "x"));
  coordinator_->Stalls(now_ + kLong - Duration(1), &answers);
  EXPECT_TRUE(answers.empty()) << "too early";
  coordinator_->Stalls(now_ + kLong, &answers);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].to, 0u);
  EXPECT_EQ(std::get<WaitMessage>(answers[0].msg), (WaitMessage{7, {1, 2, 3}}));
  answers.clear();
  coordinator_->Stalls(now_ + 2 * kLong, &answers);
  EXPECT_TRUE(answers.empty()) << "nothing has changed";
  Send(1, Ready(9, "x"));
  coordinator_->Stalls(now_ + 2 * kLong, &answers);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(std::get<WaitMessage>(answers[0].msg), (WaitMessage{7, {2, 3}}));
  EXPECT_EQ(std::get<WaitMessage>(answers[1].msg), (WaitMessage{9, {2, 3}}));
}

TEST_F(CoordinatorTest, RefusesWhatOnlyACoordinatorSays) {
  Make({0, 1});
  Answers answers;
  EXPECT_FALSE(coordinator_->Receive(1, RunMessage{}, now_, &answers).ok());
  EXPECT_FALSE(coordinator_->Receive(9, LeaveMessage{0}, now_, &answers).ok()) << "an unknown rank";
  ReadyMessage outside = Ready(1, "x");
  outside.ranks = {0, 77};
  EXPECT_EQ(EndIn(Send(1, outside)).status.code(), Code::kInvalidArgument);
}

// Hosts that submit the same tensors in orders of their own, several rounds: each ticket is
// answered once, and all hosts get the same batches in the same order.
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
        const auto& run = std::get<RunMessage>(answer.msg);
        EXPECT_GT(run.number, last[answer.to]);
        last[answer.to] = run.number;
        for (const RunEntry& entry : run.entries) {
          ASSERT_EQ(open[answer.to].count(entry.ticket), 1u) << "seed " << seed;
          done[answer.to].push_back(open[answer.to][entry.ticket]);
          open[answer.to].erase(entry.ticket);
        }
        if (answer.to == 0) take(Send(answer.to, DoneMessage{run.number}));
        continue;
      }
      const uint32_t h = can[random() % can.size()];
      const std::string name = to_say[h].front();
      to_say[h].erase(to_say[h].begin());
      open[h][++tickets[h]] = name;
      take(Send(h, Ready(tickets[h], name)));
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
    EXPECT_TRUE(Send(1, Ready(5, "x")).empty());
    if (join_first) {
      EXPECT_TRUE(Send(1, JoinMessage{6, 1}).empty());
    }
    Answers answers = Send(1, WithdrawMessage{5, "rank 1 leaves"});
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(EndIn(answers).ticket, 5u);
    if (!join_first) {
      EXPECT_TRUE(Send(1, JoinMessage{6, 1}).empty());
    }
    for (uint32_t later : {0u, 2u}) {
      answers = Send(later, Ready(9, "x"));
      ASSERT_EQ(answers.size(), 1u) << "not as if rank 1 had brought nothing";
      EXPECT_EQ(answers[0].to, later);
      EXPECT_THAT(EndIn(answers).status.message(), HasSubstr("rank 1 leaves"));
    }
    EXPECT_TRUE(Send(0, Ready(10, "x")).empty()) << "the next round is a new one";
    answers = Send(2, Ready(10, "x"));
    ASSERT_EQ(answers.size(), 2u);
    EXPECT_EQ(RunIn(answers).leaders, (std::vector<uint32_t>{0, 2}));
  }
}

TEST_F(CoordinatorTest, WhoHasJoinedIsNotAwaitedThoughTheJoinHasFailed) {
  Make({0, 1, 2});
  ReadyMessage pair = Ready(1, "x");
  pair.domain = 1;
  pair.ranks = {0, 1};
  EXPECT_TRUE(Send(1, JoinMessage{6, 1}).empty());
  EXPECT_FALSE(Send(2, LeaveMessage{2}).empty()) << "the join cannot succeed any more";
  Answers answers = Send(0, pair);
  ASSERT_EQ(answers.size(), 1u) << "rank 1 submits nothing more";
  EXPECT_EQ(RunIn(answers).leaders, (std::vector<uint32_t>{0}));
}

// ---- calls whose data travel by another way

ReadyMessage Noted(uint64_t ticket, std::string name, std::string note) {
  ReadyMessage msg = Ready(ticket, std::move(name));
  msg.note = std::move(note);
  return msg;
}

const RunMessage& TurnIn(const Answers& answers, size_t at = 0) {
  return std::get<TurnMessage>(answers.at(at).msg).run;
}

// Each rank counts its own turns, over all sets, without a gap.
TEST_F(CoordinatorTest, GivesEveryRankItsTurnsInOneOrder) {
  Make({0, 0, 1});
  Send(0, AgreeMessage{Noted(1, "x", "a")});
  Answers answers = Send(2, AgreeMessage{Noted(1, "x", "b")});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(TurnIn(answers).turns, (std::vector<uint64_t>{1, 1}));
  EXPECT_EQ(TurnIn(answers, 1).turns, (std::vector<uint64_t>{1}));
  EXPECT_EQ(TurnIn(answers, 1).notes, (std::vector<std::string>{"a", "b"}));
  ReadyMessage pair = Noted(2, "y", "c");
  pair.domain = 1;
  pair.ranks = {1, 2};
  Send(1, AgreeMessage{pair});
  answers = Send(2, AgreeMessage{pair});
  EXPECT_EQ(TurnIn(answers).turns, (std::vector<uint64_t>{2})) << "of rank 1";
  EXPECT_EQ(TurnIn(answers, 1).turns, (std::vector<uint64_t>{2})) << "of rank 2";
  Send(0, DoneMessage{1});
  Send(0, AgreeMessage{Noted(3, "x", "a")});
  answers = Send(2, AgreeMessage{Noted(3, "x", "b")});
  EXPECT_EQ(TurnIn(answers).turns, (std::vector<uint64_t>{2, 3})) << "of ranks 0 and 1";
  EXPECT_TRUE(TurnIn(answers).notes.empty()) << "as before";
}

TEST_F(CoordinatorTest, TellsNotesAgainToWhoMayHaveMissedThem) {
  Make({0, 0, 1});
  const auto both = [&](uint64_t ticket, std::string note, std::vector<uint32_t> joined) {
    ReadyMessage first = Noted(ticket, "x", std::move(note));
    first.joined = std::move(joined);
    Send(0, AgreeMessage{first});
    Answers answers = Send(2, AgreeMessage{Noted(ticket, "x", "b")});
    Send(0, DoneMessage{ticket});
    return answers;
  };
  both(1, "a", {});
  Answers answers = both(2, "c", {1});
  EXPECT_EQ(TurnIn(answers).turns, (std::vector<uint64_t>{2, 0})) << "rank 1 has joined";
  EXPECT_EQ(TurnIn(answers).entries[0].participants, 2u);
  answers = both(3, "c", {});
  EXPECT_EQ(TurnIn(answers).turns, (std::vector<uint64_t>{3, 2}));
  EXPECT_EQ(TurnIn(answers).notes, (std::vector<std::string>{"c", "b"}));
}

TEST_F(CoordinatorTest, PutsIntoOneTurnOnlyWhatOneSetSaysAlike) {
  Make({0, 1, 1});
  std::map<uint64_t, ReadyMessage> given;
  for (uint64_t t = 1; t <= 7; ++t) {
    ReadyMessage msg = Noted(t, "t" + std::to_string(t), t == 5 ? "other" : "note");
    if (t >= 6) msg.domain = 1, msg.ranks = t == 6 ? std::vector<uint32_t>{0, 1} : msg.ranks;
    Send(0, AgreeMessage{msg});
    Send(1, AgreeMessage{msg});
  }
  EXPECT_EQ(TurnIn(Send(0, DoneMessage{1})).entries.size(), 2u) << "3 and 4";
  EXPECT_EQ(TurnIn(Send(0, DoneMessage{2})).entries.size(), 1u) << "5 has another note";
  EXPECT_EQ(TurnIn(Send(0, DoneMessage{3})).entries.size(), 1u) << "6 is of another set";
}

// It has announced the operation, or is about to, whatever it says of a join meanwhile.
TEST_F(CoordinatorTest, WaitsForThoseWhoWereCounted) {
  Make({0, 1});
  ReadyMessage counted = Ready(5, "x");
  counted.participants = 2;
  Send(1, JoinMessage{4, 1});
  EXPECT_TRUE(Send(0, AgreeMessage{counted}).empty());
  EXPECT_EQ(RunIn(Send(1, AgreeMessage{counted})).entries[0].participants, 2u);
}

// One of each, with what it is on the wire.
TEST(Coordination, EveryMessageHasItsBytes) {
  ReadyMessage ready;
  ready.ticket = 77;
  ready.domain = -2;
  ready.ranks = {1, 5};
  ready.collective = Collective::kAlltoall;
  ready.name = "layer/1";
  ready.detail = std::string("d\0d", 3);
  ready.joined = {5};
  ready.fusion_key = 6;
  ready.parts = {{4, {1, -2}}, {8, {}}};
  ready.failure = Mismatch("no");
  const RunMessage run{3, {0, 4}, {{7, 5, {{1, 2}, {}}}, {8, 5, {}}}, {}, {}, {512, 4, 2, 256}};
  ReadyMessage agree = Ready(1, "x");
  agree.note = "th";
  agree.participants = 3;
  const RunMessage turn{3, {}, {{7, 2, {}}}, {5, 0}, {"n"}};
  ReadyMessage offer = Ready(1, "xy");
  offer.sum = "ab";
  const RunMessage sums{3, {}, {{7, 2, {}}}, {}, {}, {}, {"", "ab"}};
  const std::vector<std::pair<Coordination, const char*>> all = {
      {ready,
       "004d00000000000000feffffff02000000010000000500000003070000006c617965722f310300000064006401"
       "000000050000000600000000000000020000000400000000000000020000000100000000000000feffffffffff"
       "ffff08000000000000000000000005020000006e6f"},
      {WithdrawMessage{1, "w"}, "0101000000000000000100000077"},
      {JoinMessage{2, 3}, "02020000000000000003000000"},
      {LeaveMessage{4}, "0304000000"},
      {DoneMessage{5}, "040500000000000000"},
      {run,
       "0503000000000000000200000000000000040000000200000007000000000000000500000002000000020000"
       "00010000000000000002000000000000000000000008000000000000000500000000000000"
       "00020000040000000200000000010000"},
      {EndMessage{9, Aborted("x left"), 12}, "0609000000000000000c000000060600000078206c656674"},
      {AbortNotice{"bye"}, "0703000000627965"},
      {WaitMessage{1, {2, 3}}, "080100000000000000020000000200000003000000"},
      {AgreeMessage{agree},
       "0901000000000000000000000000000000000100000078000000000000000007000000000000000100000064000"
       "000"
       "000000000000000000000000000200000074680300"
       "0000"},
      {TurnMessage{turn},
       "0a0300000000000000000000000100000007000000000000000200000000000000"
       "00000000000000000000000000000000020000000500000000000000"
       "00000000000000000100000001000000"
       "6e"},
      {OfferMessage{offer},
       "0b010000000000000000000000000000000002000000787900000000000000000700000000000000"
       "0100000064000000000000000000000000000000"
       "0002000000000000000000000000000000000000"
       "6162"},
      {SumsMessage{sums},
       "0c03000000000000000000000001000000070000000000000002000000000000000000000000000000"
       "00000000000000000200000000000000020000006162"},
      {EarlyOfferMessage{offer},
       "0d010000000000000000000000000000000002000000787900000000000000000700000000000000"
       "0100000064000000000000000000000000000000"
       "0002000000000000000000000000000000000000"
       "6162"},
      {RecallMessage{6}, "0e0600000000000000"},
      {RecalledMessage{7}, "0f0700000000000000"},
  };
  EXPECT_EQ(all.size(), std::variant_size_v<Coordination>);
  for (const auto& [message, bytes] : all)
    EXPECT_EQ(HexOf(EncodeCoordination(message).view()), bytes) << "type " << message.index();
}

TEST(Coordination, ComeBackAsTheyWereSaid) {
  ReadyMessage ready = Ready(77, "layer/1");
  ready.domain = -2;
  ready.ranks = {1, 5};
  ready.joined = {5};
  ready.detail = std::string("d\0d", 3);
  ready.parts = {{4, {1, -2}}, {8, {}}};
  ready.failure = Mismatch("no");
  Result<Coordination> back = DecodeCoordination(EncodeCoordination(ready));
  ASSERT_TRUE(back.ok());
  const auto& got = std::get<ReadyMessage>(*back);
  EXPECT_EQ(got.ticket, 77u);
  EXPECT_EQ(got.domain, -2);
  EXPECT_EQ(got.ranks, ready.ranks);
  EXPECT_EQ(got.joined, ready.joined);
  EXPECT_EQ(got.detail, ready.detail);
  EXPECT_EQ(got.parts, ready.parts);
  EXPECT_EQ(got.failure.code(), Code::kMismatch);
  RunMessage run{3, {0, 4}, {{7, 5, {{1, 2}, {}}}, {8, 5, {}}}};
  EXPECT_EQ(std::get<RunMessage>(*DecodeCoordination(EncodeCoordination(run))), run);
  EndMessage end{9, Aborted("x left"), 12};
  Result<Coordination> ended = DecodeCoordination(EncodeCoordination(end));
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(std::get<EndMessage>(*ended).last_joined, 12u);
  EXPECT_EQ(std::get<EndMessage>(*ended).status.message(), "x left");
  for (const Coordination& msg : {Coordination(WithdrawMessage{1, "w"}),
                                  Coordination(JoinMessage{2, 3}), Coordination(LeaveMessage{4}),
                                  Coordination(DoneMessage{5}), Coordination(AbortNotice{"bye"})}) {
    Result<Coordination> heard = DecodeCoordination(EncodeCoordination(msg));
    ASSERT_TRUE(heard.ok());
    EXPECT_EQ(EncodeCoordination(*heard), EncodeCoordination(msg));
  }
}

TEST(Coordination, DamagedOnesAreRefused) {
  RunMessage run{3, {0, 4}, {{7, 5, {{1, 2}, {}}}}};
  const std::string whole(EncodeCoordination(run).view());
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(DecodeCoordination(whole.substr(0, bytes)).ok()) << bytes;
  }
  EXPECT_FALSE(DecodeCoordination(whole + "x").ok());
  EXPECT_FALSE(DecodeCoordination("\xff").ok());
  std::string huge = whole;
  huge[9] = huge[10] = huge[11] = huge[12] = '\x7f';  // the number of leaders
  EXPECT_FALSE(DecodeCoordination(huge).ok()) << "a length beyond the message takes no memory";
}

}  // namespace
}  // namespace hvd
