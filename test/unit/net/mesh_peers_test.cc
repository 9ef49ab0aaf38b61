#include "runtime/net/mesh/mesh_peers.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <set>
#include <string>

namespace hvd {
namespace {

constexpr size_t kMostKept = 1 << 20;

// The peers of one process, and their requests to their mesh.
struct Process final : MeshPeersOwner {
  explicit Process(uint32_t rank) : peers({rank, kMostKept}, epoll.get(), *this) {}
  void Dial(MeshRoute to) override { dialled.push_back(to); }
  bool Expects(MeshRoute from) const override { return expected.contains(from.rank); }
  void GaveUp(const std::string& why) override { gave_up = why; }

  std::vector<MeshRoute> dialled;
  std::set<uint32_t> expected;
  std::string gave_up;
  UniqueFd epoll{::epoll_create1(EPOLL_CLOEXEC)};
  MeshPeers peers;
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
    return process.peers.table().LossIn(group);
  }

  Process a_{0}, b_{1};
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
  EXPECT_EQ(b_.peers.table().MovedWith(group), b_.peers.table().moved());
  EXPECT_GT(b_.peers.table().moved(), 2 * text_.size());
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
  b_.peers.table().CloseInForkedChild();  // as the kernel does for a process that dies
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
  b_.peers.table().CloseInForkedChild();
  for (int events = 0; events < 2; ++events) a_.peers.HandleOutgoing({1}, EPOLLIN | EPOLLHUP);
  EXPECT_EQ(received.status.message(), "rank 1 at 10.0.0.1:7 has left");
  EXPECT_TRUE(LossOf(a_, 1).ok());
}

TEST_F(MeshPeersTest, APeerThatGivesUpSaysWhy) {
  Connect(b_, 1, a_, 0);
  b_.peers.SendGoodbye("rank 1 gave up: no memory");
  b_.peers.table().CloseInForkedChild();
  // The epoll reports it until the end is read: the header, the text, the end.
  for (int events = 0; events < 3; ++events) a_.peers.HandleIncoming({1}, EPOLLIN | EPOLLHUP);
  EXPECT_EQ(a_.gave_up, "rank 1 gave up: no memory");
}

TEST_F(MeshPeersTest, APeerIsNotLostWhileItsOwnConnectionIsInItsHandshake) {
  Connect(a_, 0, b_, 1);
  a_.expected.insert(1);
  b_.peers.table().CloseInForkedChild();
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
  EXPECT_EQ(b_.peers.table().MovedWith(group), b_.peers.table().moved()) << "of all stripes";
}

TEST_F(MeshPeersTest, TheOnlyRankIsFoundWhileThereIsNoOther) {
  EXPECT_EQ(a_.peers.table().FindOnly(), nullptr);
  MeshPeer& first = a_.peers.table().Of({1, 0});
  a_.peers.table().Of({1, 1});
  EXPECT_EQ(a_.peers.table().FindOnly(), &first) << "stripes are of one rank";
  a_.peers.table().Of({2, 0});
  EXPECT_EQ(a_.peers.table().FindOnly(), nullptr);
}

TEST_F(MeshPeersTest, APeerThatIsGoneOnOneStripeIsGoneOnAll) {
  for (uint32_t stripe : {0, 1}) Connect(b_, 1, a_, 0, stripe);
  MeshTransfer received = Receiving(1);
  Begin(a_, &received);
  b_.peers.table().CloseInForkedChild();
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
  b_.peers.table().CloseInForkedChild();
  for (int events = 0; events < 3; ++events) a_.peers.HandleIncoming({1, 1}, EPOLLIN | EPOLLHUP);
  EXPECT_EQ(a_.gave_up, "rank 1 gave up: no memory");
}

TEST_F(MeshPeersTest, APeerLeavesInPeaceStripeByStripe) {
  for (uint32_t stripe : {0, 1}) Connect(b_, 1, a_, 0, stripe);
  b_.peers.SendGoodbye("");
  b_.peers.table().CloseInForkedChild();
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

// Small messages of both directions go over the connection that the lower rank has dialled: their
// acknowledgements travel with data.
class SharedConnectionTest : public MeshPeersTest {
 protected:
  // Events of the epoll at rank 0, until the end of a connection is read.
  void HearShared(uint32_t events = EPOLLIN) {
    for (int i = 0; i < 3; ++i) a_.peers.HandleOutgoing({1}, events);
  }
  void HearOwn(uint32_t events = EPOLLIN) {
    for (int i = 0; i < 3; ++i) a_.peers.HandleIncoming({1}, events);
  }
  const std::string medium_ = std::string(4000, 'm');
};

TEST_F(SharedConnectionTest, TheHigherRankNeedsNoneOfItsOwn) {
  Connect(a_, 0, b_, 1);
  MeshTransfer sent = Sending(0, text_), received = Receiving(1);
  Begin(a_, &received);
  Begin(b_, &sent);
  EXPECT_TRUE(sent.done);
  EXPECT_TRUE(b_.dialled.empty());
  HearShared();
  EXPECT_EQ(received.small, text_);
  MeshTransfer longer = Sending(0, medium_);
  Begin(b_, &longer);
  EXPECT_EQ(b_.dialled, std::vector<MeshRoute>{{0}});
}

TEST_F(SharedConnectionTest, TheLowerRankDialsItsOwn) {
  Connect(b_, 1, a_, 0);
  MeshTransfer sent = Sending(1, text_);
  Begin(a_, &sent);
  EXPECT_EQ(a_.dialled, std::vector<MeshRoute>{{1}});
  EXPECT_FALSE(sent.done);
}

TEST_F(SharedConnectionTest, StripesAreNotShared) {
  Connect(a_, 0, b_, 1, 1);
  MeshTransfer sent = Sending(0, text_);
  sent.stripe = 1;
  Begin(b_, &sent);
  EXPECT_EQ(b_.dialled, (std::vector<MeshRoute>{{0, 1}}));
}

// Whichever connection is read first.
TEST_F(SharedConnectionTest, MessagesKeepTheirOrderOverBothConnections) {
  for (bool shared_first : {false, true}) {
    Process a(0), b(1);
    Connect(a, 0, b, 1);
    Connect(b, 1, a, 0);
    std::array<std::string, 5> texts = {medium_, text_, other_, medium_ + "2", "last"};
    for (std::string& text : texts) {
      MeshTransfer sent = Sending(0, text);
      Begin(b, &sent);
      ASSERT_TRUE(sent.done);
    }
    for (int i = 0; i < 6; ++i) {
      if ((i % 2 == 0) == shared_first) {
        a.peers.HandleOutgoing({1}, EPOLLIN);
      } else {
        a.peers.HandleIncoming({1}, EPOLLIN);
      }
    }
    for (const std::string& text : texts) {
      MeshTransfer received = Receiving(1);
      Begin(a, &received);
      ASSERT_TRUE(received.done);
      EXPECT_EQ(received.small, text);
    }
  }
}

// One that has no leave yet is followed by those of its tag.
TEST_F(SharedConnectionTest, AMessageDoesNotOvertakeALargeOneOfItsTag) {
  Connect(a_, 0, b_, 1);
  Connect(b_, 1, a_, 0);
  const std::string large(kMeshEagerBytes + 1, 'x');
  MeshTransfer parked = Sending(0, large), behind = Sending(0, text_), other = Sending(0, other_);
  other.tag = {2, 2};
  for (MeshTransfer* transfer : {&parked, &behind, &other}) Begin(b_, transfer);
  EXPECT_FALSE(behind.done);
  EXPECT_TRUE(other.done);
  std::string place(large.size(), ' ');
  MeshTransfer received = ReceiveOf(parked, place), next = Receiving(1);
  received.peer = 1;
  Begin(a_, &received);
  b_.peers.HandleIncoming({0}, EPOLLIN);  // the leave
  HearOwn();
  HearShared();
  HearOwn();
  Begin(a_, &next);
  EXPECT_EQ(place, large);
  EXPECT_EQ(next.small, text_);
}

// The receiver would wait for its number.
TEST_F(SharedConnectionTest, AMessageThatIsGivenUpLeavesNoGap) {
  Connect(a_, 0, b_, 1);
  MeshTransfer given_up = Sending(0, medium_), small = Sending(0, text_);
  Begin(b_, &given_up);  // waits for a connection
  Begin(b_, &small);
  MeshTransfer received = Receiving(1);
  Begin(a_, &received);
  HearShared();
  EXPECT_FALSE(received.done) << "the first one comes before it";
  b_.peers.GiveUp(&given_up);
  Connect(b_, 1, a_, 0);
  EXPECT_TRUE(received.done);
  EXPECT_EQ(received.small, text_);
}

TEST_F(SharedConnectionTest, APeerThatHasNoneOfItsOwnSaysGoodbye) {
  for (const std::string why : {"", "rank 1 gave up: no memory"}) {
    Process a(0), b(1);
    Connect(a, 0, b, 1);
    MeshTransfer sent = Sending(0, text_), received = Receiving(1), never = Receiving(1);
    Begin(b, &sent);
    b.peers.SendGoodbye(why);
    b.peers.table().CloseInForkedChild();
    Begin(a, &received);
    Begin(a, &never);
    for (int i = 0; i < 3; ++i) a.peers.HandleOutgoing({1}, EPOLLIN | EPOLLHUP);
    EXPECT_EQ(received.small, text_);
    EXPECT_EQ(a.gave_up, why);
    if (why.empty()) {
      EXPECT_EQ(never.status.message(), "rank 1 at 10.0.0.1:7 has left");
      EXPECT_TRUE(LossOf(a, 1).ok());
    }
  }
}

// The end of the shared connection is seen first, while a message on it waits for an earlier one.
TEST_F(SharedConnectionTest, TheLastMessagesOfAPeerThatLeavesAreNotLost) {
  for (bool own_first : {false, true}) {
    Process a(0), b(1);
    Connect(a, 0, b, 1);
    Connect(b, 1, a, 0);
    MeshTransfer first = Sending(0, medium_), last = Sending(0, text_);
    Begin(b, &first);
    Begin(b, &last);
    b.peers.SendGoodbye("");
    b.peers.table().CloseInForkedChild();
    if (own_first) a.peers.HandleIncoming({1}, EPOLLIN | EPOLLHUP);
    for (int i = 0; i < 3; ++i) a.peers.HandleOutgoing({1}, EPOLLIN | EPOLLHUP);
    for (int i = 0; i < 3; ++i) a.peers.HandleIncoming({1}, EPOLLIN | EPOLLHUP);
    MeshTransfer one = Receiving(1), two = Receiving(1), never = Receiving(1);
    for (MeshTransfer* transfer : {&one, &two, &never}) Begin(a, transfer);
    EXPECT_EQ(one.small, medium_);
    EXPECT_EQ(two.small, text_);
    EXPECT_EQ(never.status.message(), "rank 1 at 10.0.0.1:7 has left");
    EXPECT_TRUE(LossOf(a, 1).ok());
  }
}

TEST_F(SharedConnectionTest, APeerThatDiesIsLostOnBoth) {
  Connect(a_, 0, b_, 1);
  Connect(b_, 1, a_, 0);
  MeshTransfer sent = Sending(0, text_), received = Receiving(1), never = Receiving(1);
  Begin(b_, &sent);
  Begin(a_, &received);
  Begin(a_, &never);
  b_.peers.table().CloseInForkedChild();
  HearShared(EPOLLIN | EPOLLHUP);
  EXPECT_EQ(received.small, text_);
  EXPECT_EQ(never.status.message(), "rank 1 at 10.0.0.1:7 is gone: it closed the connection");
  EXPECT_FALSE(LossOf(a_, 1).ok());
}

TEST(MeshInboxTest, ANumberComesOnce) {
  uint64_t numbered = 0;
  MeshOutbox outbox(numbered);
  MeshAnyReceives any;
  MeshInbox inbox(1, kMostKept, outbox, any);
  const MeshFrame first{MeshFrameType::kData, 4, {1, 1}, 1},
      second{MeshFrameType::kData, 4, {1, 1}, 2};
  EXPECT_EQ(inbox.Begin(second)->to, nullptr) << "it waits for the first";
  ASSERT_NE(inbox.Begin(first)->to, nullptr);
  EXPECT_FALSE(inbox.Begin(first).ok()) << "it is under way";
  EXPECT_EQ(inbox.Begin(second)->to, nullptr);
  ASSERT_TRUE(inbox.Begin({MeshFrameType::kReady, 0, {7, 7}, 0}).ok());
  ASSERT_TRUE(inbox.End(first).ok());
  EXPECT_FALSE(inbox.Begin(first).ok());
  EXPECT_NE(inbox.Begin(second)->to, nullptr);
}

// It would wait for all that stands before it, and the other side for it.
TEST_F(MeshPeersTest, LeaveToSendOvertakesWhatIsNotOnTheWireYet) {
  uint64_t numbered = 0;
  MeshOutbox outbox(numbered);
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
