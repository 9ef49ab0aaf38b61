// The work of the negotiation thread of rank 1 on the coordinator's messages, and how it ends.
#include "runtime/backends/hosts/negotiator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "test/fakes/refusing_inter_host_comm.h"

namespace hvd {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Gives out messages of other ranks one by one, then the status `after`.
class ScriptedComm final : public test::RefusingInterHostComm {
 public:
  std::string_view name() const override { return "scripted"; }
  Status Send(uint32_t, uint64_t, std::span<const std::byte> bytes, TimePoint) override {
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    text.remove_suffix(1);  // in one piece
    Result<Coordination> msg = DecodeCoordination(std::string(text));
    if (msg.ok()) sent.push_back(std::move(*msg));
    return msg.status();
  }
  Result<InterHostMessage> Receive(uint32_t, uint64_t, TimePoint) override {
    if (coming.empty()) return after;
    MessageBytes bytes = EncodeCoordination(coming.front().second);
    InterHostMessage message{coming.front().first, std::string(bytes.view()) + '\0'};
    coming.pop_front();
    return message;
  }
  void Wake() override {}
  void Abort(const Status&) override {}

  std::deque<std::pair<uint32_t, Coordination>> coming;
  std::vector<Coordination> sent;
  Status after = Status(Code::kInProgress, "nothing");
};

class NegotiatorTest : public testing::Test, public NegotiatorOwner {
 protected:
  NegotiatorTest() {
    options_.map = {{0, 1}, 1};
    options_.cause_grace = options_.goodbye = Duration::zero();
  }

  NegotiatorRequests PopRequests(bool) override { return std::exchange(orders_, {}); }
  void OnBatch(LeaderBatch&& batch) override { batches_.push_back(std::move(batch)); }
  Status OnClosed(const Status& why) override {
    if (closed_.ok()) closed_ = why;
    return closed_;
  }
  Status OnFailed(const Status& status) override {
    failed_ = status;
    return OnClosed(status);
  }

  LeaderOpPointer Post(uint64_t ticket, ResultStatus* status) {
    auto op = std::make_shared<LeaderOp>();
    op->ready.ticket = ticket;
    op->hosts = std::make_shared<HostParts>(options_.map, std::vector<uint32_t>{0, 1});
    op->set_size = 2;
    op->parts.push_back(std::make_shared<LeaderTensor>());
    op->parts.back()->result_status = status;
    orders_.posted.push_back(op);
    return op;
  }
  // A sum x, reported with this part of it.
  LeaderOpPointer PostOffer(uint64_t ticket, ResultStatus* status, std::string sum) {
    LeaderOpPointer op = Post(ticket, status);
    op->ready.name = "x";
    op->ready.collective = Collective::kAllreduce;
    op->offered_bytes = sum.size();
    OfferMessage offer{op->ready};
    offer.ready.sum = std::move(sum);
    orders_.outbox.emplace_back(std::move(offer));
    return op;
  }
  // Of rank 0, for x.
  static EarlyOfferMessage Early(uint64_t ticket, std::string sum) {
    EarlyOfferMessage early;
    early.ready.ticket = ticket;
    early.ready.name = "x";
    early.ready.collective = Collective::kAllreduce;
    early.ready.sum = std::move(sum);
    return early;
  }
  void Run() {
    Negotiator negotiator(comm_, options_, publisher_, *this);
    while (negotiator.Serve()) {
    }
    negotiator.Finish();
  }

  LocalSegmentSource segments_;
  SharedHeap heap_{segments_};
  ResultPublisher publisher_{
      heap_,
      {std::chrono::seconds(60), [] {}, [] { return false; }, [this] { return !failed_.ok(); }}};
  HostLeaderOptions options_;
  ScriptedComm comm_;
  NegotiatorRequests orders_;
  std::vector<LeaderBatch> batches_;
  Status closed_, failed_;
  ResultStatus status_{};
};

TEST_F(NegotiatorTest, ATicketThatRunsBecomesABatch) {
  const LeaderOpPointer op = Post(7, &status_);
  RunMessage run;
  run.number = 3;
  run.leaders = {0, 1};
  run.entries = {{7, 2, {{}}}};
  comm_.coming = {{0, run}, {0, AbortNotice{}}};
  Run();
  ASSERT_EQ(batches_.size(), 1U);
  EXPECT_EQ(batches_[0].msg.number, 3U);
  EXPECT_EQ(batches_[0].ops.at(0), op);
  EXPECT_EQ(status_.now(), Phase::kSilent) << "the batch is executed elsewhere";
  EXPECT_TRUE(failed_.ok()) << failed_.message();
}

TEST_F(NegotiatorTest, WithoutNamesTheFirstMembersLead) {
  Post(7, &status_);
  RunMessage run;
  run.entries = {{7, 2, {{}}}};
  comm_.coming = {{0, run}, {0, AbortNotice{}}};
  Run();
  ASSERT_EQ(batches_.size(), 1U);
  EXPECT_EQ(batches_[0].msg.leaders, FirstMembers(options_.map, {}));
}

TEST_F(NegotiatorTest, AnOperationWithoutDataEndsHere) {
  Post(7, &status_);
  comm_.coming = {{0, EndMessage{7, Status::Ok(), 5}}, {0, AbortNotice{}}};
  Run();
  EXPECT_EQ(status_.now(), Phase::kDone);
  EXPECT_EQ(status_.last_joined, 5U);
  EXPECT_THAT(batches_, IsEmpty());
}

TEST_F(NegotiatorTest, AnAbortNoticeFailsWhatIsPosted) {
  Post(7, &status_);
  comm_.coming = {{0, AbortNotice{"rank 0 gave up"}}};
  Run();
  EXPECT_EQ(closed_.message(), "rank 0 gave up");
  EXPECT_EQ(status_.now(), Phase::kFailed);
  EXPECT_TRUE(failed_.ok());
}

// The failure has its own reason, though the same look received the end of all.
TEST_F(NegotiatorTest, AFailureBeforeAnAbortNoticeKeepsItsReason) {
  ResultStatus status{};
  LeaderOpPointer op = Post(4, &status);
  comm_.coming = {{0, EndMessage{4, Mismatch("ranks disagree"), 0}},
                  {0, AbortNotice{"rank 0 left the world"}}};
  Negotiator negotiator(comm_, options_, publisher_, *this);
  EXPECT_FALSE(negotiator.Poll(TimePoint{}));
  while (negotiator.Serve()) {
  }
  negotiator.Finish();
  EXPECT_EQ(static_cast<Code>(status.code), Code::kMismatch);
}

// Nothing is to be moved: the members are told, and the first leader says that it is done.
TEST_F(NegotiatorTest, WhatHostsOnlyAgreeAboutIsDoneAtOnce) {
  ResultStatus first{}, second{};
  LeaderOpPointer op = Post(4, &first);
  op->parts.push_back(std::make_shared<LeaderTensor>());
  op->parts.back()->result_status = &second;
  RunMessage run{9, {1}, {{4, 2, {{1, 2}, {3, 4}}}}, {7}, {"note"}};
  comm_.coming = {{0, TurnMessage{run}}, {0, AbortNotice{}}};
  Run();
  EXPECT_THAT(batches_, IsEmpty());
  ASSERT_EQ(first.now(), Phase::kDone);
  ASSERT_EQ(second.now(), Phase::kDone);
  const LeaderTensor& part = *op->parts[1];
  const Result<AgreedPart> agreed =
      DecodeAgreed({reinterpret_cast<const char*>(part.memory), second.result_bytes});
  ASSERT_TRUE(agreed.ok()) << agreed.status().message();
  EXPECT_EQ(agreed->turns, (std::vector<uint64_t>{7}));
  EXPECT_EQ(agreed->agreement.place, 1u);
  EXPECT_EQ(agreed->agreement.batch_size, 2u);
  EXPECT_EQ(agreed->agreement.participants, 2u);
  EXPECT_EQ(agreed->agreement.extents, (std::vector<int64_t>{3, 4}));
  ASSERT_EQ(comm_.sent.size(), 1u);
  EXPECT_EQ(std::get<DoneMessage>(comm_.sent[0]).number, 9u);
}

TEST_F(NegotiatorTest, TheLossOfTheCoordinatorEndsAllWork) {
  Post(7, &status_);
  comm_.after = Internal("the connection was reset");
  Run();
  EXPECT_EQ(failed_.message(),
            "rank 0, which arranges the work of all hosts, left the world or is out of reach: the "
            "connection was reset");
  EXPECT_EQ(status_.now(), Phase::kFailed);
}

// Seen as one that has left, it gets no notice of the coordinator, which leaves as well.
TEST_F(NegotiatorTest, TheLossOfTheCoordinatorIsNoFailureForARankThatLeaves) {
  options_.has_left = [](uint32_t rank) { return rank == 1; };
  comm_.after = Aborted("rank 0 has left the world");
  Run();
  EXPECT_TRUE(failed_.ok()) << failed_.message();
  EXPECT_EQ(closed_.message(), "the world was shut down");
}

TEST_F(NegotiatorTest, OnlyTheCoordinatorGivesOrders) {
  comm_.coming = {{1, WaitMessage{7, {0}}}};
  Run();
  EXPECT_THAT(failed_.message(), HasSubstr("only the coordinator, rank 0, may send"));
}

TEST_F(NegotiatorTest, AnUnknownTicketIsAnError) {
  RunMessage run;
  run.leaders = {0, 1};
  run.entries = {{7, 2, {{}}}};
  comm_.coming = {{0, run}};
  Run();
  EXPECT_THAT(failed_.message(), HasSubstr("a ticket that never was"));
}

TEST_F(NegotiatorTest, TheSumsOfOthersGoWithTheBatch) {
  Post(7, &status_);
  RunMessage run;
  run.entries = {{7, 2, {{}}}};
  run.sums = {"abcd", ""};
  comm_.coming = {{0, SumsMessage{run}}, {0, AbortNotice{}}};
  Run();
  ASSERT_EQ(batches_.size(), 1U);
  EXPECT_EQ(batches_[0].msg.sums, run.sums);
  EXPECT_TRUE(failed_.ok()) << failed_.message();
}

TEST_F(NegotiatorTest, SumsOfOtherLeadersAreAnError) {
  Post(7, &status_);
  RunMessage run;
  run.entries = {{7, 2, {{}}}};
  run.sums = {"abcd"};
  comm_.coming = {{0, SumsMessage{run}}};
  Run();
  EXPECT_THAT(failed_.message(), HasSubstr("for other leaders"));
  EXPECT_THAT(batches_, IsEmpty());
}

TEST_F(NegotiatorTest, AnEarlyOfferSettlesWhatIsReported) {
  PostOffer(7, &status_, "1234");
  comm_.coming = {{0, Early(20, "abcd")}, {0, AbortNotice{}}};
  Run();
  ASSERT_EQ(batches_.size(), 1U);
  EXPECT_EQ(batches_[0].msg.sums, (std::vector<MessageBytes>{"abcd", ""}));
  EXPECT_EQ(batches_[0].msg.leaders, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(batches_[0].msg.number, 0U);
  EXPECT_EQ(batches_[0].msg.entries.at(0).participants, 2U);
  ASSERT_EQ(comm_.sent.size(), 1U);
  EXPECT_EQ(std::get<OfferMessage>(comm_.sent[0]).ready.sum, "1234");
}

TEST_F(NegotiatorTest, AnEarlyOfferWaitsForTheReportAndGoesBehindIt) {
  Negotiator negotiator(comm_, options_, publisher_, *this);
  comm_.coming = {{0, Early(20, "abcd")}};
  EXPECT_TRUE(negotiator.Poll(TimePoint{}));
  EXPECT_THAT(batches_, IsEmpty());
  PostOffer(7, &status_, "1234");
  EXPECT_TRUE(negotiator.Poll(TimePoint{}));
  EXPECT_EQ(batches_.size(), 1U);
  EXPECT_EQ(comm_.sent.size(), 1U);
}

// Another look would delay it.
TEST_F(NegotiatorTest, ALookEndsWithWhatSettlesAnOperation) {
  Negotiator negotiator(comm_, options_, publisher_, *this);
  PostOffer(7, &status_, "1234");
  comm_.coming = {{0, WaitMessage{7, {0}}}, {0, Early(20, "abcd")}, {0, Early(21, "abcd")}};
  EXPECT_TRUE(negotiator.Poll(TimePoint{}));
  EXPECT_EQ(batches_.size(), 1U);
  EXPECT_EQ(comm_.coming.size(), 1U);
}

TEST_F(NegotiatorTest, AnEarlyOfferThatDoesNotFitIsDropped) {
  for (const std::string part : {"", "longer"}) {
    Negotiator negotiator(comm_, options_, publisher_, *this);
    PostOffer(7, &status_, part);
    comm_.coming = {{0, Early(20, "abcd")}, {0, Early(21, "abcd")}};
    EXPECT_TRUE(negotiator.Poll(TimePoint{}));
    EXPECT_THAT(batches_, IsEmpty());
  }
  comm_.coming.clear();
  Negotiator negotiator(comm_, options_, publisher_, *this);
  comm_.coming = {{0, Early(20, "abcd")}, {0, Early(21, "abcd")}};
  EXPECT_FALSE(negotiator.Poll(TimePoint{})) << "there is one at a time";
}

TEST_F(NegotiatorTest, AnEarlyOfferThatIsRecalledIsNotUsed) {
  Negotiator negotiator(comm_, options_, publisher_, *this);
  comm_.coming = {{0, Early(20, "abcd")}, {0, RecallMessage{20}}, {0, RecallMessage{19}}};
  EXPECT_TRUE(negotiator.Poll(TimePoint{}));
  ASSERT_EQ(comm_.sent.size(), 2U);
  EXPECT_EQ(std::get<RecalledMessage>(comm_.sent[0]).ticket, 20U);
  EXPECT_EQ(std::get<RecalledMessage>(comm_.sent[1]).ticket, 19U) << "used or unknown";
  PostOffer(7, &status_, "1234");
  EXPECT_TRUE(negotiator.Poll(TimePoint{}));
  EXPECT_THAT(batches_, IsEmpty());
}

// It has failed here, though the failure is not published yet: the offer is for the next of that
// name.
TEST_F(NegotiatorTest, AnEarlyOfferIsNotForWhatHasFailed) {
  Negotiator negotiator(comm_, options_, publisher_, *this);
  ResultStatus next{};
  PostOffer(7, &status_, "1234");
  PostOffer(8, &next, "1234");
  comm_.coming = {{0, EndMessage{7, Mismatch("ranks disagree"), 0}}, {0, Early(20, "abcd")}};
  EXPECT_FALSE(negotiator.Poll(TimePoint{}));
  ASSERT_EQ(batches_.size(), 1U);
  EXPECT_EQ(batches_[0].msg.entries.at(0).ticket, 8U);
}

TEST_F(NegotiatorTest, ARankThatLeavesSaysSoAndDoesNotWaitForEver) {
  orders_.leaving = true;
  orders_.outbox.emplace_back(WithdrawMessage{7, "it was given up"});
  Run();
  ASSERT_EQ(comm_.sent.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<WithdrawMessage>(comm_.sent[0]));
  EXPECT_EQ(std::get<LeaveMessage>(comm_.sent[1]).rank, 1U);
  EXPECT_TRUE(failed_.ok());
}

TEST_F(NegotiatorTest, NeighboursThatLeftAreReportedByTheFirstRankOfTheHost) {
  options_.map = {{0, 1, 1}, 1};
  options_.has_left = [](uint32_t rank) { return rank == 2; };
  EXPECT_TRUE(Negotiator(comm_, options_, publisher_, *this).watches_neighbours());
  orders_.leaving = true;
  Run();
  ASSERT_EQ(comm_.sent.size(), 2U);
  EXPECT_EQ(std::get<LeaveMessage>(comm_.sent[0]).rank, 2U);
  options_.map = {{0, 1, 1}, 2};
  EXPECT_FALSE(Negotiator(comm_, options_, publisher_, *this).watches_neighbours());
}

}  // namespace
}  // namespace hvd
