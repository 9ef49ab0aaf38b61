#include "runtime/core/outbox.h"

#include <gtest/gtest.h>

#include <cstring>

#include "runtime/core/request/message.h"
#include "test/sim/sim_peers.h"
#include "test/unit/runtime/engine_parts.h"

namespace hvd::test {
namespace {

// Rank 0 announces, rank 1 reads the records. The stream has room for two records of 256 bytes.
class OutboxTest : public ::testing::Test {
 protected:
  Operation* Barrier(const std::string& name) { return rank_.Describe(BarrierOf(name)); }
  // The oldest record, after which there is room for one more.
  std::vector<std::byte> ReadRecord() {
    net_.DeliverAll();
    const std::span<const std::byte> record = reader_.Peek(0);
    std::vector<std::byte> bytes(record.begin(), record.end());
    if (!bytes.empty()) reader_.Consume(0);
    return bytes;
  }
  std::string NameIn(const std::vector<std::byte>& record) {
    IncomingRequest request;
    EXPECT_TRUE(Read(record, &request).ok());
    if (request.detail.empty()) return "";
    Detail detail;
    std::string_view name;
    EXPECT_TRUE(DecodeDetail(request.detail, &detail, &name).ok());
    return std::string(name);
  }

  SimNet net_{2, 2, 256};
  SimPeers peers_{net_, 0}, reader_{net_, 1};
  OneRank rank_{0, 2};
  Outbox outbox_{peers_, rank_.state.names};
};

TEST_F(OutboxTest, SendsTheDetailOfANameOnce) {
  Operation* op = Barrier("b");
  outbox_.Announce(op);
  EXPECT_TRUE(op->sent);
  EXPECT_TRUE(outbox_.empty());
  outbox_.Announce(op);
  EXPECT_EQ(NameIn(ReadRecord()), "b");
  EXPECT_EQ(NameIn(ReadRecord()), "");
}

TEST_F(OutboxTest, QueuesWhatFindsNoRoomAndKeepsTheOrder) {
  Operation* ops[] = {Barrier("a"), Barrier("b"), Barrier("c"), Barrier("d")};
  for (Operation* op : ops) outbox_.Announce(op);
  EXPECT_TRUE(ops[1]->sent);
  EXPECT_FALSE(ops[2]->sent);
  EXPECT_TRUE(outbox_.has_unsent());
  EXPECT_EQ(outbox_.AnnounceNext(), nullptr) << "still no room";
  EXPECT_EQ(NameIn(ReadRecord()), "a");
  EXPECT_EQ(outbox_.AnnounceNext(), ops[2]);
  EXPECT_TRUE(ops[2]->sent);
  EXPECT_EQ(outbox_.AnnounceNext(), nullptr);
  ReadRecord();
  EXPECT_EQ(outbox_.AnnounceNext(), ops[3]);
  EXPECT_FALSE(outbox_.has_unsent());
  EXPECT_EQ(NameIn(ReadRecord()), "c");
  EXPECT_EQ(NameIn(ReadRecord()), "d");
}

TEST_F(OutboxTest, DoesNotSendWhatWasWithdrawn) {
  Operation* ops[] = {Barrier("a"), Barrier("b"), Barrier("c"), Barrier("d")};
  for (Operation* op : ops) outbox_.Announce(op);
  outbox_.Withdraw(ops[2]);
  outbox_.Withdraw(ops[0]);  // sent long ago
  ReadRecord();
  EXPECT_EQ(outbox_.AnnounceNext(), ops[3]);
  EXPECT_TRUE(outbox_.empty());
}

TEST_F(OutboxTest, SendsAMessageThatIsTooLargeForARecordInPieces) {
  std::vector<std::byte> payload(600);
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i);
  Operation* op = Barrier("b");
  op->parts[0].descriptor.payload = payload;
  outbox_.Announce(op);
  EXPECT_FALSE(op->sent) << "more than two records";
  Assembly assembly;
  for (int records = 0; !assembly.complete(); ++records) {
    ASSERT_LT(records, 10);
    const std::vector<std::byte> record = ReadRecord();
    ASSERT_LE(record.size(), 256u);
    ASSERT_GE(record.size(), sizeof(MessageHead));
    MessageHead head;
    std::memcpy(&head, record.data(), sizeof head);
    EXPECT_EQ(head.kind, MessageKind::kPiece);
    ASSERT_TRUE(assembly.Add(head, std::span(record).subspan(sizeof head)).ok());
    if (outbox_.AnnounceNext() != nullptr) {
      EXPECT_TRUE(op->sent);
    }
  }
  IncomingRequest request;
  ASSERT_TRUE(Read(assembly.bytes(), &request).ok());
  EXPECT_TRUE(std::equal(request.payloads.begin(), request.payloads.end(), payload.begin()));
}

TEST_F(OutboxTest, TheAbortNoticeIsSentWhenThereIsRoomAlsoAfterClear) {
  Operation* ops[] = {Barrier("a"), Barrier("b"), Barrier("c")};
  for (Operation* op : ops) outbox_.Announce(op);
  outbox_.SendAbortNotice("no memory");
  outbox_.Clear();
  EXPECT_FALSE(outbox_.has_unsent());
  EXPECT_FALSE(outbox_.empty());
  ReadRecord();
  outbox_.SendAbortNotice();
  EXPECT_TRUE(outbox_.empty());
  ReadRecord();
  const std::vector<std::byte> record = ReadRecord();
  ASSERT_GE(record.size(), sizeof(MessageHead));
  EXPECT_EQ(static_cast<MessageKind>(record[offsetof(MessageHead, kind)]), MessageKind::kAbort);
  const char* text = reinterpret_cast<const char*>(record.data()) + sizeof(MessageHead);
  EXPECT_EQ(std::string(text, record.size() - sizeof(MessageHead)), "no memory");
}

TEST(OutboxAlone, AWorldOfOneSendsNothing) {
  SimNet net(1, 2, 256);
  SimPeers peers(net, 0);
  OneRank rank(0, 1);
  Outbox outbox(peers, rank.state.names);
  Operation* op = rank.Describe(BarrierOf("b"));
  outbox.Announce(op);
  EXPECT_TRUE(op->sent);
  outbox.SendAbortNotice("no memory");
  EXPECT_TRUE(outbox.empty());
  EXPECT_EQ(net.events(), 0u);
}

}  // namespace
}  // namespace hvd::test
