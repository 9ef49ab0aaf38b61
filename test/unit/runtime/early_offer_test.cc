// Early offers at the coordinator: to which leader, what settles them, and how they are taken back.
// negotiator_test.cc has what a leader does with one, test/model/early_offer.pml all orders of
// steps.
#include "runtime/backends/hosts/coordination/early_offer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "runtime/backends/hosts/coordination/coordinator.h"

namespace hvd {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Answers = Coordinator::Answers;

OfferMessage OfferOf(uint64_t ticket, std::string name, std::string sum) {
  OfferMessage offer;
  offer.ready.ticket = ticket;
  offer.ready.name = std::move(name);
  offer.ready.collective = Collective::kAllreduce;
  offer.ready.parts = {{100, {}}};
  offer.ready.sum = std::move(sum);
  return offer;
}

ReadyMessage ReportOf(uint64_t ticket, std::string name) {
  return OfferOf(ticket, std::move(name), "").ready;
}

class EarlyOfferTest : public ::testing::Test {
 protected:
  void Make(std::vector<uint32_t> host_of) {
    const auto compare = [](std::string_view name, std::span<const HostDetail>) {
      return Mismatch(std::string(name) + " differs");
    };
    coordinator_.emplace(HostMap{std::move(host_of), 0}, compare, CoordinatorOptions{});
  }
  Answers Send(uint32_t from, Coordination msg) {
    Answers answers;
    Status heard = coordinator_->Receive(from, std::move(msg), TimePoint{}, &answers);
    EXPECT_TRUE(heard.ok()) << heard.message();
    return answers;
  }
  // Rank 0 offers its part of x to the leader `to`.
  void OfferTo(uint32_t to, uint64_t ticket = 9) {
    Answers answers = Send(0, OfferOf(ticket, "x", "nil"));
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].to, to);
    EXPECT_EQ(std::get<EarlyOfferMessage>(answers[0].msg).ready.sum, "nil");
  }
  // The answer is that rank 0 makes the sum of its ticket 9 with this part.
  static void ExpectSettled(const Answers& answers, const std::string& sum) {
    ASSERT_EQ(answers.size(), 1u) << "the other leader knows";
    EXPECT_EQ(answers[0].to, 0u);
    const RunMessage& run = std::get<SumsMessage>(answers[0].msg).run;
    EXPECT_EQ(run.number, 0u);
    EXPECT_EQ(run.entries.at(0).ticket, 9u);
    EXPECT_EQ(run.sums, (std::vector<MessageBytes>{"", sum}));
  }
  static void ExpectRecall(const Answers& answers, uint32_t to) {
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].to, to);
    EXPECT_EQ(std::get<RecallMessage>(answers[0].msg).ticket, 9u);
  }
  static void ExpectFailure(const Answers& answers, uint32_t to, const std::string& why) {
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].to, to);
    EXPECT_THAT(std::get<EndMessage>(answers[0].msg).status.message(), HasSubstr(why));
  }

  std::optional<Coordinator> coordinator_;
};

TEST_F(EarlyOfferTest, TheOtherHostNeedsNoAnswer) {
  Make({0, 0, 1, 1});
  OfferTo(2);
  Answers answers = Send(2, OfferOf(5, "x", "one"));
  ExpectSettled(answers, "one");
  EXPECT_EQ(std::get<SumsMessage>(answers[0].msg).run.entries[0].participants, 4u);
  OfferTo(2, 10);
}

TEST_F(EarlyOfferTest, NothingIsOfferedThatMayNotBeSettled) {
  const auto nothing = [this](uint32_t from, const OfferMessage& offer) {
    for (const Coordinator::Answer& answer : Send(from, offer))
      EXPECT_FALSE(std::holds_alternative<EarlyOfferMessage>(answer.msg)) << answer.to;
  };
  Make({0, 1, 2});
  nothing(0, OfferOf(1, "three hosts", "nil"));
  Make({0, 0, 1, 1});
  nothing(2, OfferOf(1, "not rank 0", "one"));
  OfferMessage part = OfferOf(1, "not the first rank there", "nil");
  part.ready.domain = 1;
  part.ready.ranks = {0, 3};
  nothing(0, part);
  part = OfferOf(2, "a rank here has joined", "nil");
  part.ready.joined = {1};
  nothing(0, part);
  Send(2, JoinMessage{7, 2});
  nothing(0, OfferOf(3, "the leader there has joined", "nil"));
}

TEST_F(EarlyOfferTest, OneAtATime) {
  Make({0, 1});
  OfferTo(1);
  EXPECT_THAT(Send(0, OfferOf(10, "y", "nil")), IsEmpty());
  ExpectSettled(Send(1, OfferOf(1, "x", "one")), "one");
  Answers answers = Send(1, OfferOf(2, "y", "one"));
  EXPECT_EQ(answers.size(), 2u) << "in the usual way";
}

TEST_F(EarlyOfferTest, WhatDoesNotFitIsExchanged) {
  for (const bool offers : {false, true}) {
    Make({0, 1});
    OfferTo(1);
    Answers answers = offers ? Send(1, OfferOf(1, "x", "longer")) : Send(1, ReportOf(1, "x"));
    ASSERT_EQ(answers.size(), 2u);
    EXPECT_THAT(std::get<RunMessage>(answers[0].msg).sums, IsEmpty());
  }
}

TEST_F(EarlyOfferTest, HostsThatDisagreeLearnHow) {
  Make({0, 1});
  OfferTo(1);
  OfferMessage odd = OfferOf(1, "x", "one");
  odd.ready.detail = "another shape";
  Answers answers = Send(1, odd);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(std::get<EndMessage>(answers[0].msg).status.message(), "x differs");
}

TEST(KeptOffer, IsTakenBackByItsOwnTicketAlone) {
  KeptOffer kept;
  ASSERT_TRUE(kept.Keep(OfferOf(9, "x", "nil").ready).ok());
  kept.Drop(8);
  EXPECT_FALSE(kept.empty());
  kept.Drop(9);
  EXPECT_TRUE(kept.empty());
}

TEST_F(EarlyOfferTest, WhatIsWithdrawnRunsIfItWasUsed) {
  Make({0, 1});
  OfferTo(1);
  ExpectRecall(Send(0, WithdrawMessage{9, "given up"}), 1);
  EXPECT_THAT(Send(0, WithdrawMessage{9, "again"}), IsEmpty());
  ExpectSettled(Send(1, OfferOf(1, "x", "one")), "one");
  EXPECT_THAT(Send(1, RecalledMessage{9}), IsEmpty());
}

TEST_F(EarlyOfferTest, WhatIsWithdrawnFailsIfItWasNotUsed) {
  Make({0, 1});
  OfferTo(1);
  ExpectRecall(Send(0, WithdrawMessage{9, "given up"}), 1);
  EXPECT_THAT(Send(1, RecalledMessage{8}), IsEmpty()) << "another one";
  ExpectFailure(Send(1, RecalledMessage{9}), 0, "given up");
  ExpectFailure(Send(1, OfferOf(1, "x", "one")), 1, "given up");
  OfferTo(1, 10);
}

TEST_F(EarlyOfferTest, AReportThatDoesNotFitTakesItBackAsWell) {
  Make({0, 1});
  OfferTo(1);
  Send(0, WithdrawMessage{9, "given up"});
  Answers answers = Send(1, ReportOf(1, "x"));
  ASSERT_EQ(answers.size(), 2u);
  for (const Coordinator::Answer& answer : answers)
    EXPECT_EQ(std::get<EndMessage>(answer.msg).status.message(), "given up");
}

// Rank 3 has its result and goes, and is quicker than the report of the leader beside it.
TEST_F(EarlyOfferTest, AMemberThatLeavesMayHaveTheResult) {
  Make({0, 0, 1, 1});
  OfferTo(2);
  Answers answers = Send(3, LeaveMessage{3});
  ASSERT_EQ(answers.size(), 2u) << "its farewell, and the recall";
  EXPECT_EQ(std::get<RecallMessage>(answers[1].msg).ticket, 9u);
  ExpectSettled(Send(2, OfferOf(1, "x", "one")), "one");
  ExpectFailure(Send(2, OfferOf(2, "x", "one")), 2, "rank 3 left the world");
}

TEST_F(EarlyOfferTest, AMemberThatLeavesBeforeFailsIt) {
  Make({0, 0, 1, 1});
  OfferTo(2);
  Send(3, LeaveMessage{3});
  ExpectFailure(Send(2, RecalledMessage{9}), 0, "rank 3 left the world");
  ExpectFailure(Send(0, OfferOf(10, "x", "nil")), 0, "rank 3 left the world");
}

TEST_F(EarlyOfferTest, ALeaderThatLeavesHasReportedWhatItUsed) {
  Make({0, 0, 1, 1});
  OfferTo(2);
  Answers answers = Send(2, LeaveMessage{2});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[1].to, 0u);
  EXPECT_THAT(std::get<EndMessage>(answers[1].msg).status.message(),
              HasSubstr("rank 2 left the world"));
}

// A neighbour says that the leader leaves before that has said so itself.
TEST_F(EarlyOfferTest, ALeaderIsHeardOutThoughANeighbourSaysThatItLeaves) {
  for (const bool used : {false, true}) {
    Make({0, 0, 1, 1});
    OfferTo(2);
    ExpectRecall(Send(3, LeaveMessage{2}), 2);
    if (used) ExpectSettled(Send(2, OfferOf(1, "x", "one")), "one");
    Answers answers = Send(2, LeaveMessage{2});
    ASSERT_EQ(answers.size(), used ? 1u : 2u);
    EXPECT_EQ(answers.back().to, 2u) << "the farewell comes last";
  }
}

TEST_F(EarlyOfferTest, AHostThatHasJoinedGivesItBack) {
  Make({0, 0, 1, 1});
  OfferTo(2);
  EXPECT_THAT(Send(2, JoinMessage{3, 3}), IsEmpty());
  Answers answers = Send(3, JoinMessage{3, 3});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].to, 2u);
  EXPECT_EQ(std::get<RecallMessage>(answers[0].msg).ticket, 9u);
  EXPECT_EQ(std::get<RunMessage>(answers[1].msg).entries[0].participants, 2u);
  EXPECT_THAT(Send(2, RecalledMessage{9}), IsEmpty());
}

TEST_F(EarlyOfferTest, ItIsNoUseWhereAnotherRankLeads) {
  for (const bool withdrawn : {false, true}) {
    Make({0, 0, 1, 1});
    OfferTo(2);
    if (withdrawn) ExpectRecall(Send(0, WithdrawMessage{9, "given up"}), 2);
    OfferMessage other = OfferOf(1, "x", "one");
    other.ready.joined = {2};
    Answers answers = Send(3, other);
    if (withdrawn) {
      ASSERT_EQ(answers.size(), 2u);
      EXPECT_EQ(std::get<EndMessage>(answers[1].msg).status.message(), "given up");
    } else {
      ASSERT_EQ(answers.size(), 3u);
      EXPECT_EQ(std::get<RecallMessage>(answers[0].msg).ticket, 9u);
      EXPECT_EQ(std::get<RunMessage>(answers[2].msg).entries[0].participants, 3u);
    }
  }
}

TEST_F(EarlyOfferTest, TheCoordinatorDoesNotLeaveWithoutIt) {
  for (const bool used : {false, true}) {
    Make({0, 1});
    OfferTo(1);
    Answers answers;
    EXPECT_TRUE(coordinator_->RecallEarly("rank 0 left", &answers));
    ExpectRecall(answers, 1);
    if (used) {
      ExpectSettled(Send(1, OfferOf(1, "x", "one")), "one");
    } else {
      ExpectFailure(Send(1, RecalledMessage{9}), 0, "rank 0 left");
    }
    EXPECT_FALSE(coordinator_->RecallEarly("rank 0 left", &answers));
  }
}

}  // namespace
}  // namespace hvd
