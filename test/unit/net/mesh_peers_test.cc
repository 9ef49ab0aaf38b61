#include "runtime/net/mesh/mesh_peers.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <set>

namespace hvd {
namespace {

constexpr size_t kMostKept = 1 << 20;

// The peers of one process, and their requests to their mesh.
struct Process final : MeshPeersOwner {
  void Dial(MeshRoute to) override { dialled.push_back(to); }
  bool Expects(MeshRoute from) const override { return expected.contains(from.rank); }
  void GaveUp(const std::string& why) override { gave_up = why; }

  std::vector<MeshRoute> dialled;
  std::set<uint32_t> expected;
  std::string gave_up;
  UniqueFd epoll{::epoll_create1(EPOLL_CLOEXEC)};
  MeshPeers peers{epoll.get(), kMostKept, *this};
};

class MeshPeersTest : public ::testing::Test {
 protected:
  // A connection over which rank 0 sends to rank 1, or the other way round.
  void Connect(Process& from, uint32_t from_rank, Process& to, uint32_t to_rank,
               uint32_t stripe = 0) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    MeshGreeting greeting;
    greeting.stripe = stripe;
    greeting.address = "10.0.0." + std::to_string(to_rank) + ":7";
    from.peers.Attach(to_rank, UniqueFd(ends[0]), greeting);
    greeting.address = "10.0.0." + std::to_string(from_rank) + ":7";
    greeting.incoming = true;
    to.peers.Attach(from_rank, UniqueFd(ends[1]), greeting);
  }
  MeshTransfer Sending(uint32_t peer, const std::string& text) {
    MeshTransfer transfer;
    transfer.peer = peer;
    transfer.tag = {1, 1};
    transfer.from = reinterpret_cast<const std::byte*>(text.data());
    transfer.bytes = text.size();
    return transfer;
  }
  MeshTransfer Receiving(uint32_t peer) {
    MeshTransfer transfer;
    transfer.kind = MeshTransfer::Kind::kReceiveSmall;
    transfer.peer = peer;
    transfer.tag = {1, 1};
    return transfer;
  }
  // At rank 1, of a message of rank 0, as long as the place.
  static MeshTransfer ReceiveOf(const MeshTransfer& sent, std::string& place) {
    MeshTransfer transfer;
    transfer.kind = MeshTransfer::Kind::kReceive;
    transfer.tag = sent.tag;
    transfer.eager = sent.eager;
    transfer.to = reinterpret_cast<std::byte*>(place.data());
    transfer.bytes = place.size();
    return transfer;
  }
  static void Begin(Process& process, MeshTransfer* transfer) {
    process.peers.Begin({&transfer, 1});
  }
  Status LossOf(Process& process, uint32_t rank) {
    const uint32_t group[] = {rank};
    return process.peers.LossIn(group);
  }

  Process a_, b_;  // ranks 0 and 1
  const std::string text_ = "hello", other_ = "other";
};

TEST_F(MeshPeersTest, TheFirstMessageDialsAndGoesOutWhenThereIsAConnection) {
  MeshTransfer sent = Sending(1, text_), again = Sending(1, text_), received = Receiving(0);
  Begin(a_, &sent);
  Begin(a_, &again);
  EXPECT_EQ(a_.dialled, std::vector<MeshRoute>{{1}});
  EXPECT_FALSE(sent.done);
  Connect(a_, 0, b_, 1);
  EXPECT_TRUE(sent.done);
  Begin(b_, &received);
  b_.peers.HandleIncoming({0}, EPOLLIN);
  EXPECT_TRUE(received.done);
  EXPECT_EQ(received.small, text_);
  const uint32_t group[] = {0};
  EXPECT_EQ(b_.peers.MovedWith(group), b_.peers.moved());
  EXPECT_GT(b_.peers.moved(), 2 * text_.size());
}

TEST_F(MeshPeersTest, AReceiveOfAnyTakesTheFirstMessage) {
  MeshTransfer sent = Sending(1, text_), received = Receiving(kAnyMeshPeer);
  Begin(b_, &received);
  Begin(a_, &sent);
  Connect(a_, 0, b_, 1);
  b_.peers.HandleIncoming({0}, EPOLLIN);
  EXPECT_TRUE(received.done);
  EXPECT_EQ(received.peer, 0u);
  EXPECT_EQ(received.small, text_);
}

TEST_F(MeshPeersTest, AReceiveThatIsGivenUpLeavesItsMessageToTheNext) {
  MeshTransfer sent = Sending(1, text_), given_up = Receiving(0), next = Receiving(0);
  Begin(b_, &given_up);
  b_.peers.GiveUp(&given_up);
  Begin(a_, &sent);
  Connect(a_, 0, b_, 1);
  b_.peers.HandleIncoming({0}, EPOLLIN);
  EXPECT_FALSE(given_up.done);
  Begin(b_, &next);
  EXPECT_EQ(next.small, text_);
}

// The receiver gives no leave for it, and a message behind it waits as well.
TEST_F(MeshPeersTest, AnEagerMessageWaitsForItsReceiver) {
  Connect(a_, 0, b_, 1);
  const std::string large(kMeshEagerBytes + 1, 'x');
  std::string place(large.size(), ' ');
  MeshTransfer eager = Sending(1, large), behind = Sending(1, text_);
  eager.tag = {2, 2};
  eager.eager = true;
  Begin(a_, &eager);
  Begin(a_, &behind);
  ASSERT_TRUE(eager.done && behind.done);
  MeshTransfer received = Receiving(0), late = ReceiveOf(eager, place);
  Begin(b_, &received);
  b_.peers.HandleIncoming({0}, EPOLLIN);
  EXPECT_FALSE(received.done);
  Begin(b_, &late);
  EXPECT_TRUE(late.done && late.status.ok());
  EXPECT_EQ(place, large);
  EXPECT_EQ(received.small, text_);
  EXPECT_TRUE(b_.dialled.empty()) << "a leave was sent";
}

TEST_F(MeshPeersTest, AnEagerMessageOfAnotherSizeLosesItsSender) {
  Connect(a_, 0, b_, 1);
  const std::string large(kMeshEagerBytes + 1, 'x');
  MeshTransfer eager = Sending(1, large);
  eager.eager = true;
  Begin(a_, &eager);
  b_.peers.HandleIncoming({0}, EPOLLIN);
  EXPECT_TRUE(LossOf(b_, 0).ok());
  std::string place(kMeshEagerBytes, ' ');
  MeshTransfer late = ReceiveOf(eager, place);
  Begin(b_, &late);
  EXPECT_FALSE(late.status.ok());
  EXPECT_FALSE(LossOf(b_, 0).ok());
}

TEST_F(MeshPeersTest, APeerWhoseConnectionEndsIsNamedAndLost) {
  Connect(a_, 0, b_, 1);
  MeshTransfer received = Receiving(1);
  Begin(a_, &received);
  b_.peers.CloseInForkedChild();  // as the kernel does for a process that dies
  a_.peers.HandleOutgoing({1}, EPOLLIN | EPOLLHUP);
  EXPECT_EQ(received.status.message(), "rank 1 at 10.0.0.1:7 is gone: it closed the connection");
  EXPECT_EQ(LossOf(a_, 1).message(), received.status.message());
  EXPECT_TRUE(LossOf(a_, 2).ok());
  MeshTransfer late = Sending(1, text_);
  Begin(a_, &late);
  EXPECT_EQ(late.status.message(), received.status.message());
}

TEST_F(MeshPeersTest, APeerThatLeavesInPeaceIsNoLoss) {
  Connect(a_, 0, b_, 1);
  MeshTransfer received = Receiving(1);
  Begin(a_, &received);
  b_.peers.SendGoodbye("");  // over the connection on which it never sent anything
  b_.peers.CloseInForkedChild();
  a_.peers.HandleOutgoing({1}, EPOLLIN | EPOLLHUP);
  EXPECT_EQ(received.status.message(), "rank 1 at 10.0.0.1:7 has left");
  EXPECT_TRUE(LossOf(a_, 1).ok());
}

TEST_F(MeshPeersTest, APeerThatGivesUpSaysWhy) {
  Connect(b_, 1, a_, 0);
  b_.peers.SendGoodbye("rank 1 gave up: no memory");
  b_.peers.CloseInForkedChild();
  // The epoll reports it until the end is read: the header, the text, the end.
  for (int events = 0; events < 3; ++events) a_.peers.HandleIncoming({1}, EPOLLIN | EPOLLHUP);
  EXPECT_EQ(a_.gave_up, "rank 1 gave up: no memory");
}

TEST_F(MeshPeersTest, APeerIsNotLostWhileItsOwnConnectionIsInItsHandshake) {
  Connect(a_, 0, b_, 1);
  a_.expected.insert(1);
  b_.peers.CloseInForkedChild();
  a_.peers.HandleOutgoing({1}, EPOLLIN | EPOLLHUP);
  a_.peers.LoseLate();
  EXPECT_TRUE(LossOf(a_, 1).ok()) << "its last words may still come";
  a_.expected.clear();
  a_.peers.LoseLate();
  EXPECT_FALSE(LossOf(a_, 1).ok());
}

TEST_F(MeshPeersTest, StripesHaveConnectionsAndMessagesOfTheirOwn) {
  MeshTransfer first = Sending(1, text_), second = Sending(1, other_);
  second.stripe = 1;
  Begin(a_, &first);
  Begin(a_, &second);
  EXPECT_EQ(a_.dialled, (std::vector<MeshRoute>{{1, 0}, {1, 1}}));
  Connect(a_, 0, b_, 1, 1);
  EXPECT_FALSE(first.done);
  EXPECT_TRUE(second.done);
  MeshTransfer received = Receiving(0);
  received.stripe = 1;
  Begin(b_, &received);
  b_.peers.HandleIncoming({0, 1}, EPOLLIN);
  EXPECT_EQ(received.small, other_);
  const uint32_t group[] = {0};
  EXPECT_EQ(b_.peers.MovedWith(group), b_.peers.moved()) << "of all stripes";
}

TEST_F(MeshPeersTest, TheOnlyRankIsFoundWhileThereIsNoOther) {
  EXPECT_EQ(a_.peers.FindOnly(), nullptr);
  MeshPeer& first = a_.peers.Of({1, 0});
  a_.peers.Of({1, 1});
  EXPECT_EQ(a_.peers.FindOnly(), &first) << "stripes are of one rank";
  a_.peers.Of({2, 0});
  EXPECT_EQ(a_.peers.FindOnly(), nullptr);
}

TEST_F(MeshPeersTest, APeerThatIsGoneOnOneStripeIsGoneOnAll) {
  for (uint32_t stripe : {0, 1}) Connect(b_, 1, a_, 0, stripe);
  MeshTransfer received = Receiving(1);
  Begin(a_, &received);
  b_.peers.CloseInForkedChild();
  a_.peers.HandleIncoming({1, 1}, EPOLLIN | EPOLLHUP);
  EXPECT_EQ(received.status.message(), "rank 1 at 10.0.0.1:7 is gone: it closed the connection");
  EXPECT_FALSE(LossOf(a_, 1).ok());
  MeshTransfer late = Receiving(1);
  late.stripe = 2;
  Begin(a_, &late);
  EXPECT_EQ(late.status.message(), received.status.message()) << "a stripe that begins later";
}

TEST_F(MeshPeersTest, TheLastWordsOfAPeerCountOnWhicheverStripeTheyCome) {
  Connect(b_, 1, a_, 0, 0);
  b_.peers.SendGoodbye("rank 1 gave up: no memory");
  Connect(b_, 1, a_, 0, 1);  // nothing is said here
  b_.peers.CloseInForkedChild();
  for (int events = 0; events < 3; ++events) a_.peers.HandleIncoming({1, 1}, EPOLLIN | EPOLLHUP);
  EXPECT_EQ(a_.gave_up, "rank 1 gave up: no memory");
}

TEST_F(MeshPeersTest, APeerLeavesInPeaceStripeByStripe) {
  for (uint32_t stripe : {0, 1}) Connect(b_, 1, a_, 0, stripe);
  b_.peers.SendGoodbye("");
  b_.peers.CloseInForkedChild();
  for (uint32_t stripe : {1, 0}) {
    for (int events = 0; events < 3; ++events) {
      a_.peers.HandleIncoming({1, stripe}, EPOLLIN | EPOLLHUP);
    }
    EXPECT_TRUE(LossOf(a_, 1).ok());
  }
  MeshTransfer late = Receiving(1);
  late.stripe = 2;
  Begin(a_, &late);
  EXPECT_EQ(late.status.message(), "rank 1 at 10.0.0.1:7 has left");
  EXPECT_TRUE(LossOf(a_, 1).ok());
}

// It would wait for all that stands before it, and the other side for it.
TEST_F(MeshPeersTest, LeaveToSendOvertakesWhatIsNotOnTheWireYet) {
  MeshOutbox outbox;
  const std::string large(kMeshEagerBytes, 'x');
  MeshTransfer first = Sending(1, large), second = Sending(1, large);
  outbox.Send(&first);
  outbox.Send(&second);
  outbox.Sent(10);  // of the first
  outbox.PutReady({2, 2});
  std::array<iovec, 8> room;
  ASSERT_EQ(outbox.Pieces(room), 5u);
  EXPECT_EQ(room[1].iov_len, large.size());
  Result<MeshFrame> frame = DecodeMeshHeader(static_cast<const std::byte*>(room[2].iov_base));
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(frame->type, MeshFrameType::kReady);
}

TEST_F(MeshPeersTest, TheEndOfAllEndsEveryTransfer) {
  MeshTransfer sent = Sending(1, text_), received = Receiving(1), any = Receiving(kAnyMeshPeer);
  for (MeshTransfer* transfer : {&sent, &received, &any}) Begin(a_, transfer);
  a_.peers.LoseAll(Aborted("the end"));
  for (const MeshTransfer* transfer : {&sent, &received, &any}) {
    EXPECT_EQ(transfer->status.message(), "the end");
  }
}

}  // namespace
}  // namespace hvd
