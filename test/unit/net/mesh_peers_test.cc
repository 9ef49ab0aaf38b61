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
  void Dial(uint32_t peer) override { dialled.push_back(peer); }
  bool Expects(uint32_t peer) const override { return expected.contains(peer); }
  void GaveUp(const std::string& why) override { gave_up = why; }

  std::vector<uint32_t> dialled;
  std::set<uint32_t> expected;
  std::string gave_up;
  UniqueFd epoll{::epoll_create1(EPOLL_CLOEXEC)};
  MeshPeers peers{epoll.get(), kMostKept, *this};
};

class MeshPeersTest : public ::testing::Test {
 protected:
  // A connection over which rank 0 sends to rank 1, or the other way round.
  void Connect(Process& from, uint32_t from_rank, Process& to, uint32_t to_rank) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    MeshGreeting greeting;
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
  Status LossOf(Process& process, uint32_t rank) {
    const uint32_t group[] = {rank};
    return process.peers.LossIn(group);
  }

  Process a_, b_;  // ranks 0 and 1
  const std::string text_ = "hello";
};

TEST_F(MeshPeersTest, TheFirstMessageDialsAndGoesOutWhenThereIsAConnection) {
  MeshTransfer sent = Sending(1, text_), again = Sending(1, text_), received = Receiving(0);
  a_.peers.Begin(&sent);
  a_.peers.Begin(&again);
  EXPECT_EQ(a_.dialled, std::vector<uint32_t>{1});
  EXPECT_FALSE(sent.done);
  Connect(a_, 0, b_, 1);
  EXPECT_TRUE(sent.done);
  b_.peers.Begin(&received);
  b_.peers.HandleIncoming(0, EPOLLIN);
  EXPECT_TRUE(received.done);
  EXPECT_EQ(received.small, text_);
  const uint32_t group[] = {0};
  EXPECT_EQ(b_.peers.MovedWith(group), b_.peers.moved());
  EXPECT_GT(b_.peers.moved(), 2 * text_.size());
}

TEST_F(MeshPeersTest, AReceiveOfAnyTakesTheFirstMessage) {
  MeshTransfer sent = Sending(1, text_), received = Receiving(kAnyMeshPeer);
  b_.peers.Begin(&received);
  a_.peers.Begin(&sent);
  Connect(a_, 0, b_, 1);
  b_.peers.HandleIncoming(0, EPOLLIN);
  EXPECT_TRUE(received.done);
  EXPECT_EQ(received.peer, 0u);
  EXPECT_EQ(received.small, text_);
}

TEST_F(MeshPeersTest, AReceiveThatIsGivenUpLeavesItsMessageToTheNext) {
  MeshTransfer sent = Sending(1, text_), given_up = Receiving(0), next = Receiving(0);
  b_.peers.Begin(&given_up);
  a_.peers.Begin(&sent);
  Connect(a_, 0, b_, 1);
  b_.peers.HandleIncoming(0, EPOLLIN);
  ASSERT_TRUE(given_up.done);
  b_.peers.GiveUp(&given_up);
  b_.peers.Begin(&next);
  EXPECT_EQ(next.small, text_);
}

TEST_F(MeshPeersTest, APeerWhoseConnectionEndsIsNamedAndLost) {
  Connect(a_, 0, b_, 1);
  MeshTransfer received = Receiving(1);
  a_.peers.Begin(&received);
  b_.peers.CloseInForkedChild();  // as the kernel does for a process that dies
  a_.peers.HandleOutgoing(1, EPOLLIN | EPOLLHUP);
  EXPECT_EQ(received.status.message(), "rank 1 at 10.0.0.1:7 is gone: it closed the connection");
  EXPECT_EQ(LossOf(a_, 1).message(), received.status.message());
  EXPECT_TRUE(LossOf(a_, 2).ok());
  MeshTransfer late = Sending(1, text_);
  a_.peers.Begin(&late);
  EXPECT_EQ(late.status.message(), received.status.message());
}

TEST_F(MeshPeersTest, APeerThatLeavesInPeaceIsNoLoss) {
  Connect(a_, 0, b_, 1);
  MeshTransfer received = Receiving(1);
  a_.peers.Begin(&received);
  b_.peers.SendGoodbye("");  // over the connection on which it never sent anything
  b_.peers.CloseInForkedChild();
  a_.peers.HandleOutgoing(1, EPOLLIN | EPOLLHUP);
  EXPECT_EQ(received.status.message(), "rank 1 at 10.0.0.1:7 has left");
  EXPECT_TRUE(LossOf(a_, 1).ok());
}

TEST_F(MeshPeersTest, APeerThatGivesUpSaysWhy) {
  Connect(b_, 1, a_, 0);
  b_.peers.SendGoodbye("rank 1 gave up: no memory");
  b_.peers.CloseInForkedChild();
  // The epoll reports it until the end is read: the header, the text, the end.
  for (int events = 0; events < 3; ++events) a_.peers.HandleIncoming(1, EPOLLIN | EPOLLHUP);
  EXPECT_EQ(a_.gave_up, "rank 1 gave up: no memory");
}

TEST_F(MeshPeersTest, APeerIsNotLostWhileItsOwnConnectionIsInItsHandshake) {
  Connect(a_, 0, b_, 1);
  a_.expected.insert(1);
  b_.peers.CloseInForkedChild();
  a_.peers.HandleOutgoing(1, EPOLLIN | EPOLLHUP);
  a_.peers.LoseLate();
  EXPECT_TRUE(LossOf(a_, 1).ok()) << "its last words may still come";
  a_.expected.clear();
  a_.peers.LoseLate();
  EXPECT_FALSE(LossOf(a_, 1).ok());
}

TEST_F(MeshPeersTest, TheEndOfAllEndsEveryTransfer) {
  MeshTransfer sent = Sending(1, text_), received = Receiving(1), any = Receiving(kAnyMeshPeer);
  for (MeshTransfer* transfer : {&sent, &received, &any}) a_.peers.Begin(transfer);
  a_.peers.LoseAll(Aborted("the end"));
  for (const MeshTransfer* transfer : {&sent, &received, &any}) {
    EXPECT_EQ(transfer->status.message(), "the end");
  }
}

}  // namespace
}  // namespace hvd
