#include "runtime/core/inbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/core/outbox.h"
#include "test/sim/sim_peers.h"
#include "test/unit/runtime/engine_parts.h"

namespace hvd::test {
namespace {

using ::testing::HasSubstr;
using Event = Inbox::Event;

// Rank 1 announces by an Outbox, rank 0 receives.
class InboxTest : public ::testing::Test {
 protected:
  RequestSpec Sum(std::string_view name) { return TensorOf(Collective::kAllreduce, name, shape_); }
  Operation* Announce(const RequestSpec& spec, std::span<const std::byte> payload = {}) {
    Operation* op = sender_.Describe(spec);
    op->parts[0].descriptor.payload = payload;
    outbox_.Announce(op);
    net_.DeliverAll();
    return op;
  }
  void AnnounceJoin() {
    RequestSpec join;
    join.collective = Collective::kJoin;
    join.name = NameTable::kJoinName;
    Announce(join);
  }
  // A record of rank 1 that no Outbox writes.
  void SendRecord(const std::string& bytes) {
    std::span<std::byte> record = sender_peers_.Reserve(bytes.size());
    ASSERT_FALSE(record.empty());
    std::memcpy(record.data(), bytes.data(), bytes.size());
    sender_peers_.Commit();
    net_.DeliverAll();
  }
  static std::string Bytes(const MessageHead& head) {
    return {reinterpret_cast<const char*>(&head), sizeof head};
  }
  void ExpectDamaged(const std::string& what) {
    EXPECT_EQ(inbox_.Next(1).event, Event::kFailed);
    EXPECT_EQ(inbox_.failure().code(), Code::kInternal);
    EXPECT_EQ(inbox_.failure().message(), "rank 1 sent " + what);
  }

  const RecordVector<int64_t> shape_{3};
  SimNet net_{3, 8, 256};
  SimPeers peers_{net_, 0}, sender_peers_{net_, 1};
  OneRank rank_{0, 3}, sender_{1, 3};
  Inbox inbox_{peers_, rank_.state.names, rank_.state.sets, rank_.state.joins, rank_.state.rounds};
  Outbox outbox_{sender_peers_, sender_.state.names};
};

TEST_F(InboxTest, EntersAnAnnouncementIntoTheRoundOfItsName) {
  EXPECT_EQ(inbox_.Next(1).event, Event::kNone);
  EXPECT_TRUE(inbox_.empty(1));
  const std::vector<std::byte> payload(40, std::byte{7});
  Announce(Sum("x"), payload);
  const Inbox::Arrival arrival = inbox_.Next(1);
  ASSERT_EQ(arrival.event, Event::kAnnounced);
  EXPECT_EQ(arrival.member, 1u);
  const TensorName& name = *arrival.name;
  EXPECT_EQ(name.text, "x");
  EXPECT_EQ(name.arrived, 1u);
  EXPECT_EQ(name.here[1], 1);
  EXPECT_EQ(name.details[1].parts[0].shape, shape_);
  EXPECT_EQ(name.descriptors[1].payload.size(), payload.size());
  EXPECT_FALSE(inbox_.empty(1));
  inbox_.Consume(1);
  EXPECT_TRUE(inbox_.empty(1));
}

TEST_F(InboxTest, KeepsAPayloadBeyondItsMessage) {
  const std::vector<std::byte> payload(40, std::byte{7});
  Announce(Sum("x"), payload);
  const Inbox::Arrival arrival = inbox_.Next(1);
  const std::byte* in_message = arrival.name->descriptors[1].payload.data();
  Inbox::KeepPayloads(arrival.name, arrival.member);
  const std::span<const std::byte> kept = arrival.name->descriptors[1].payload;
  EXPECT_NE(kept.data(), in_message);
  EXPECT_TRUE(std::equal(kept.begin(), kept.end(), payload.begin(), payload.end()));
}

TEST_F(InboxTest, TheNextRoundWaitsUntilTheRoundBeforeIsOver) {
  Operation* op = Announce(Sum("x"));
  TensorName* name = inbox_.Next(1).name;
  inbox_.Consume(1);
  outbox_.Announce(op);
  net_.DeliverAll();
  EXPECT_EQ(inbox_.Next(1).event, Event::kNone);
  EXPECT_FALSE(inbox_.empty(1));
  name->ClearRound();
  EXPECT_EQ(inbox_.Next(1).event, Event::kAnnounced);
}

TEST_F(InboxTest, ARoundThatCanNeverBeCompleteHoldsUpNobody) {
  Operation* op = Announce(Sum("x"));
  ASSERT_EQ(inbox_.Next(1).event, Event::kAnnounced);
  inbox_.Consume(1);
  outbox_.Announce(op);
  Announce(Sum("y"));
  EXPECT_EQ(inbox_.Next(1).event, Event::kNone);
  rank_.state.rounds.NoteGone(2);
  const Inbox::Arrival arrival = inbox_.Next(1);
  ASSERT_EQ(arrival.event, Event::kAnnounced);
  EXPECT_EQ(arrival.name->text, "y");
}

TEST_F(InboxTest, ANewDetailWaitsForTheRoundThatNeedsTheFormerOne) {
  Announce(Sum("x"));
  TensorName* name = inbox_.Next(1).name;
  inbox_.Consume(1);
  name->agreed = true;
  const RecordVector<int64_t> other{5};
  RequestSpec changed = TensorOf(Collective::kAllreduce, "x", other);
  sender_.state.names.Find(0, "x")->own_detail_known = false;
  Announce(changed);
  EXPECT_EQ(inbox_.Next(1).event, Event::kNone);
  EXPECT_EQ(name->details[1].parts[0].shape, shape_);
  name->ClearRound();
  EXPECT_EQ(inbox_.Next(1).event, Event::kAnnounced);
  EXPECT_EQ(name->details[1].parts[0].shape, other);
  EXPECT_FALSE(name->agreed);
}

TEST_F(InboxTest, WhatFollowsAJoinWaitsUntilTheJoinIsOver) {
  AnnounceJoin();
  ASSERT_EQ(inbox_.Next(1).event, Event::kAnnounced);
  inbox_.Consume(1);
  rank_.state.joins.Note(1);
  Announce(Sum("x"));
  EXPECT_EQ(inbox_.Next(1).event, Event::kNone);
  rank_.state.joins.Clear();
  EXPECT_EQ(inbox_.Next(1).event, Event::kAnnounced);
}

TEST_F(InboxTest, AJoinWaitsForTheChangeOfSetsThatItsRankAnnounced) {
  const std::vector<uint32_t> members{0, 1};
  RequestSpec add;
  add.collective = Collective::kAddProcessSet;
  add.name = NameTable::kSetsName;
  add.members = members;
  Announce(add);
  TensorName* change = inbox_.Next(1).name;
  inbox_.Consume(1);
  AnnounceJoin();
  EXPECT_EQ(inbox_.Next(1).event, Event::kNone);
  change->ClearRound();
  EXPECT_EQ(inbox_.Next(1).event, Event::kAnnounced);
}

TEST_F(InboxTest, ARequestOfASetWaitsUntilTheSetIsAddedAndIsIgnoredByOthers) {
  RequestSpec spec = Sum("x");
  spec.process_set = 1;
  sender_.state.sets.Add(std::vector<uint32_t>{1, 2});
  Announce(spec);
  EXPECT_EQ(inbox_.Next(1).event, Event::kNone);
  EXPECT_FALSE(inbox_.empty(1));
  rank_.state.sets.Add(std::vector<uint32_t>{1, 2});
  EXPECT_EQ(inbox_.Next(1).event, Event::kNone);
  EXPECT_TRUE(inbox_.empty(1)) << "rank 0 is no member";
}

TEST_F(InboxTest, PutsALargeMessageTogether) {
  const std::vector<std::byte> payload(1000, std::byte{3});
  Announce(Sum("x"), payload);
  const Inbox::Arrival arrival = inbox_.Next(1);
  ASSERT_EQ(arrival.event, Event::kAnnounced);
  const std::span<const std::byte> read = arrival.name->descriptors[1].payload;
  EXPECT_TRUE(std::equal(read.begin(), read.end(), payload.begin(), payload.end()));
  EXPECT_FALSE(inbox_.empty(1));
  Announce(Sum("y"));
  inbox_.Consume(1);
  EXPECT_EQ(inbox_.Next(1).name->text, "y");
}

TEST_F(InboxTest, FailsWithTheReasonOfAPeerThatEndsTheWorld) {
  outbox_.SendAbortNotice("rank 1 has no memory");
  net_.DeliverAll();
  EXPECT_EQ(inbox_.Next(1).event, Event::kFailed);
  EXPECT_EQ(inbox_.failure().code(), Code::kAborted);
  EXPECT_EQ(inbox_.failure().message(), "rank 1 has no memory");
  inbox_.Drain(1);
  EXPECT_TRUE(inbox_.empty(1));
}

TEST_F(InboxTest, FindsARecordThatIsNoMessage) {
  SendRecord("short");
  ExpectDamaged("a damaged request");
}

TEST_F(InboxTest, FindsAMessageOfAnUnknownKind) {
  MessageHead head{};
  head.kind = static_cast<MessageKind>(9);
  SendRecord(Bytes(head));
  ExpectDamaged("a damaged request");
}

TEST_F(InboxTest, FindsAPieceThatDoesNotFollow) {
  MessageHead head{};
  head.kind = MessageKind::kPiece;
  head.words[0] = 100;
  head.words[1] = 10;
  SendRecord(Bytes(head) + "ten bytes.");
  ExpectDamaged("a damaged request");
}

TEST_F(InboxTest, FindsANumberThatStandsForNoName) {
  MessageHead head{};
  head.name_id = 4;
  SendRecord(Bytes(head));
  ExpectDamaged("a request with an unknown number");
}

TEST_F(InboxTest, FindsADetailThatIsNone) {
  MessageHead head{};
  head.detail_bytes = 8;
  SendRecord(Bytes(head) + "nonsense");
  EXPECT_EQ(inbox_.Next(1).event, Event::kFailed);
  EXPECT_THAT(inbox_.failure().message(), HasSubstr("rank 1 sent "));
}

TEST_F(InboxTest, FindsARequestOfASetWithoutItsSender) {
  RequestSpec spec = Sum("x");
  spec.process_set = 1;
  sender_.state.sets.Add(std::vector<uint32_t>{1, 2});
  rank_.state.sets.Add(std::vector<uint32_t>{0, 2});
  Announce(spec);
  ExpectDamaged("a request that does not fit its process set");
}

}  // namespace
}  // namespace hvd::test
