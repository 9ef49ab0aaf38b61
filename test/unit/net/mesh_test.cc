#include "runtime/net/mesh/mesh.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <future>
#include <thread>
#include <vector>

#include "test/fakes/memory_kv_store.h"
#include "test/support/deadline.h"

namespace hvd {
namespace {

using test::MemoryKvStore;

MeshOptions OptionsOf(uint32_t rank) {
  MeshOptions options{.rank = rank, .generation = 7, .job_key = "the key of the job"};
  options.listen.addresses = {"127.0.0.1"};
  return options;
}

std::unique_ptr<Mesh> OpenMesh(MeshOptions options, KvStore& directory) {
  Result<std::unique_ptr<Mesh>> mesh = Mesh::Open(std::move(options), directory);
  EXPECT_TRUE(mesh.ok()) << mesh.status().message();
  return mesh.ok() ? std::move(*mesh) : nullptr;
}

std::span<const std::byte> AsBytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
std::span<std::byte> Room(std::string& text) {
  return {reinterpret_cast<std::byte*>(text.data()), text.size()};
}

const std::array<std::byte, 1> kOneByte{};

void ExpectOk(const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); }

void SendText(Mesh& mesh, uint32_t peer, MeshTag tag, const std::string& text) {
  MeshHandle sent = mesh.Send(peer, tag, AsBytes(text));
  ExpectOk(mesh.Wait(sent, Soon()));
}
std::string ReceiveText(Mesh& mesh, uint32_t peer, MeshTag tag, size_t bytes) {
  std::string text(bytes, '\0');
  MeshHandle received = mesh.Receive(peer, tag, Room(text));
  ExpectOk(mesh.Wait(received, Soon()));
  return text;
}
// A message of each, so that both directions are connected.
void Greet(Mesh& a, uint32_t rank_a, Mesh& b, uint32_t rank_b) {
  SendText(a, rank_b, {1, 1}, "hi");
  SendText(b, rank_a, {1, 1}, "ho");
  EXPECT_EQ(ReceiveText(a, rank_b, {1, 1}, 2), "ho");
  EXPECT_EQ(ReceiveText(b, rank_a, {1, 1}, 2), "hi");
}

// A program that is none of ours and connects to a mesh.
class Stranger {
 public:
  explicit Stranger(const Mesh& mesh) {
    Result<MeshAddress> address = ParseMeshEndpoint(mesh.record().endpoints.at(0));
    socket_.Reset(::socket(address->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket_.get(), address->get(), address->length), 0);
    timeval patience{60, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  void Send(const std::string& bytes) {
    [[maybe_unused]] ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // The bytes heard until the other side closed.
  std::string ReadOut() {
    std::string heard;
    char buffer[256];
    while (true) {
      ssize_t got = ::recv(socket_.get(), buffer, sizeof buffer, 0);
      EXPECT_FALSE(got < 0 && errno == EAGAIN) << "it was not closed";
      if (got <= 0) return heard;
      heard.append(buffer, static_cast<size_t>(got));
    }
  }
  std::string Receive(size_t bytes) {
    std::string heard(bytes, '\0');
    EXPECT_EQ(::recv(socket_.get(), heard.data(), bytes, MSG_WAITALL), static_cast<ssize_t>(bytes));
    return heard;
  }

 private:
  UniqueFd socket_;
};

class MeshPair : public ::testing::Test {
 protected:
  void SetUp() override {
    a_ = OpenMesh(OptionsOf(0), directory_);
    b_ = OpenMesh(OptionsOf(1), directory_);
  }
  MemoryKvStore directory_;
  std::unique_ptr<Mesh> a_, b_;
};

// ---- messages

TEST_F(MeshPair, MessagesMatchByTagAndKeepTheirOrder) {
  for (int n = 0; n < 20; ++n) {
    SendText(*a_, 1, {1, 5}, "five" + std::to_string(n % 10));
    SendText(*a_, 1, {2, 5}, "six" + std::to_string(n % 10));
  }
  for (int n = 0; n < 20; ++n) {
    EXPECT_EQ(ReceiveText(*b_, 0, {2, 5}, 4), "six" + std::to_string(n % 10));
  }
  for (int n = 0; n < 20; ++n) {
    EXPECT_EQ(ReceiveText(*b_, 0, {1, 5}, 5), "five" + std::to_string(n % 10));
  }
}

// Bytes that differ from place to place, and from block to block.
std::string Pattern(size_t bytes) {
  std::string pattern(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) pattern[i] = static_cast<char>(i * 31 + (i >> 12));
  return pattern;
}

TEST_F(MeshPair, EverySizeArrivesWhole) {
  for (size_t bytes : {size_t{0}, size_t{1}, kMeshEagerBytes - 1, kMeshEagerBytes,
                       kMeshEagerBytes + 1, size_t{5'000'001}}) {
    const std::string sent = Pattern(bytes);
    for (bool receiver_first : {true, false}) {
      std::string received(bytes, '?');
      MeshHandle to, from;
      if (receiver_first) from = b_->Receive(0, {3, bytes}, Room(received));
      to = a_->Send(1, {3, bytes}, AsBytes(sent));
      if (!receiver_first) from = b_->Receive(0, {3, bytes}, Room(received));
      // One thread waits for both: neither needs the other's thread to move on.
      ExpectOk(b_->Wait(from, Soon()));
      ExpectOk(a_->Wait(to, Soon()));
      EXPECT_TRUE(received == sent) << bytes;
    }
  }
}

// Appends the bytes that come through its window.
class Collector final : public MeshConsumer {
 public:
  explicit Collector(size_t window) : window_(window, '?') {}
  std::span<std::byte> window() override { return Room(window_); }
  void Consume(size_t count) override {
    most = std::max(most, count);
    taken.append(window_, 0, count);
    std::ranges::fill(window_, '?');
  }
  std::string taken;
  size_t most = 0;  // at a time

 private:
  std::string window_;
};

TEST_F(MeshPair, AMessageOfAnySizeGoesThroughAWindow) {
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{1000}, kMeshEagerBytes, kMeshEagerBytes + 1,
                       size_t{500'001}}) {
    const std::string sent = Pattern(bytes);
    for (const size_t window : {size_t{1000}, size_t{1} << 20}) {
      for (bool receiver_first : {true, false}) {
        Collector collector(window);
        MeshHandle to, from;
        const auto receive = [&] {
          MeshStart start(*b_);
          from = start.Receive(0, {3, bytes}, collector, bytes);
        };
        if (receiver_first) receive();
        to = a_->Send(1, {3, bytes}, AsBytes(sent));
        SendText(*a_, 1, {4, bytes}, "behind");
        if (!receiver_first) {
          EXPECT_EQ(ReceiveText(*b_, 0, {4, bytes}, 6), "behind");
          receive();
        }
        ExpectOk(b_->Wait(from, Soon()));
        ExpectOk(a_->Wait(to, Soon()));
        if (receiver_first) {
          EXPECT_EQ(ReceiveText(*b_, 0, {4, bytes}, 6), "behind");
        }
        EXPECT_TRUE(collector.taken == sent) << bytes;
        EXPECT_EQ(collector.most, std::min(window, bytes));
      }
    }
  }
}

TEST_F(MeshPair, BothAtOnceAndManyAtATime) {
  auto talk = [](Mesh& mesh, uint32_t peer, char mine, char theirs) {
    std::vector<std::string> sent(40), received(40);
    std::vector<MeshHandle> handles;
    for (size_t i = 0; i < sent.size(); ++i) {
      sent[i].assign(i * 20'000, mine);
      received[i].assign(i * 20'000, '?');
      handles.push_back(mesh.Send(peer, {9, i}, AsBytes(sent[i])));
    }
    for (size_t i = sent.size(); i-- > 0;) {
      handles.push_back(mesh.Receive(peer, {9, i}, Room(received[i])));
    }
    for (MeshHandle& handle : handles) ExpectOk(mesh.Wait(handle, Soon()));
    for (const std::string& text : received) EXPECT_EQ(text, std::string(text.size(), theirs));
  };
  std::thread other([&] { talk(*b_, 0, 'b', 'a'); });
  talk(*a_, 1, 'a', 'b');
  other.join();
}

TEST_F(MeshPair, ALargeMessageThatNobodyWantsYetHoldsUpNoOther) {
  std::string large(3'000'000, 'l'), received(3'000'000, '?');
  MeshHandle sent = a_->Send(1, {1, 1}, AsBytes(large));
  SendText(*a_, 1, {1, 2}, "small");
  EXPECT_EQ(ReceiveText(*b_, 0, {1, 2}, 5), "small");
  MeshHandle got = b_->Receive(0, {1, 1}, Room(received));
  ExpectOk(b_->Wait(got, Soon()));
  ExpectOk(a_->Wait(sent, Soon()));
  EXPECT_TRUE(received == large);
}

TEST(MeshTest, UnwantedMessagesAreKeptWithinABound) {
  MemoryKvStore directory;
  MeshOptions options = OptionsOf(1);
  options.most_kept_bytes = 100'000;
  std::unique_ptr<Mesh> a = OpenMesh(OptionsOf(0), directory);
  std::unique_ptr<Mesh> b = OpenMesh(options, directory);
  std::string piece(50'000, 'p');
  std::vector<MeshHandle> handles;
  for (int i = 0; i < 1000; ++i) handles.push_back(a->Send(1, {1, 1}, AsBytes(piece)));
  // 50 MB cannot all be on their way: the receiver does not read on, and the sender notices.
  EXPECT_EQ(a->Wait(handles.back(), TimePoint{}).code(), Code::kInProgress);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(ReceiveText(*b, 0, {1, 1}, piece.size()), piece);
  ExpectOk(a->Wait(handles.back(), Soon()));
}

TEST_F(MeshPair, ASizeThatDiffersIsAMismatchWithBothSizes) {
  std::string room(7, '?');
  MeshHandle received = b_->Receive(0, {1, 1}, Room(room));
  SendText(*a_, 1, {1, 1}, "12345");
  Status status = b_->Wait(received, Soon());
  EXPECT_EQ(status.code(), Code::kMismatch);
  EXPECT_NE(status.message().find("5 bytes where 7"), std::string::npos) << status.message();
}

TEST_F(MeshPair, AReceiveThatWasGivenUpGetsNothing) {
  {
    std::string gone(2, '?');
    MeshHandle handle = b_->Receive(0, {1, 1}, Room(gone));
    EXPECT_EQ(b_->Wait(handle, TimePoint{}).code(), Code::kInProgress);
  }
  SendText(*a_, 1, {1, 1}, "hi");
  EXPECT_EQ(ReceiveText(*b_, 0, {1, 1}, 2), "hi");
}

TEST_F(MeshPair, ASmallMessageIsForTheReceiveThatIsThereWhenItComes) {
  for (uint32_t from : {1u, kAnyMeshPeer}) {
    EXPECT_EQ(a_->ReceiveSmall(from, {2, 2}, TimePoint{}).status().code(), Code::kInProgress);
    for (const char* text : {"first", "second"}) SendText(*b_, 0, {2, 2}, text);
    for (const char* text : {"first", "second"}) {
      Result<MeshMessage> message = a_->ReceiveSmall(from, {2, 2}, Soon());
      ASSERT_TRUE(message.ok()) << message.status().message();
      EXPECT_EQ(message->bytes, text);
      EXPECT_EQ(message->from, 1u);
    }
  }
}

// The first waits for a connection; the next, which goes behind it, has one.
TEST_F(MeshPair, ASendThatIsOverAtOnceLeavesNothing) {
  const std::string first = "first", second = "second";
  MeshHandle rest;
  EXPECT_EQ(a_->SendNow(1, {3, 3}, AsBytes(first), &rest).code(), Code::kInProgress);
  ExpectOk(a_->Wait(rest, Soon()));
  MeshHandle nothing;
  ExpectOk(a_->SendNow(1, {3, 3}, AsBytes(second), &nothing));
  EXPECT_TRUE(a_->IsOver(nothing));
  for (const std::string& text : {first, second})
    EXPECT_EQ(ReceiveText(*b_, 0, {3, 3}, text.size()), text);
}

TEST_F(MeshPair, AWaitForManyEndsWithTheFirstThatFails) {
  std::string one(3, '?'), two(3, '?'), three(3, '?');
  MeshHandle received[] = {b_->Receive(0, {1, 1}, Room(one)), b_->Receive(0, {1, 2}, Room(two)),
                           b_->Receive(0, {1, 3}, Room(three))};
  for (uint64_t slot : {3, 1}) SendText(*a_, 1, {1, slot}, "abc");
  EXPECT_EQ(b_->WaitAll(received, SteadyNow() + std::chrono::milliseconds(20)).code(),
            Code::kInProgress);
  SendText(*a_, 1, {1, 2}, "too long");
  EXPECT_EQ(b_->WaitAll(received, Soon()).code(), Code::kMismatch);
  EXPECT_EQ(one + three, "abcabc");
}

// One thread waits for whatever comes next all the time; another one's data passes by it, in both
// directions, and it still hears what is for it: before, between and after.
TEST_F(MeshPair, WhoWaitsForDataTakesOverFromWhoWaitsForAnything) {
  std::vector<std::string> heard;
  std::thread patient([&] {
    while (heard.size() < 3) {
      Result<MeshMessage> message = b_->ReceiveSmall(kAnyMeshPeer, {7, 7}, Soon());
      ASSERT_TRUE(message.ok()) << message.status().message();
      heard.push_back(message->bytes);
    }
  });
  const std::string data(1'000'000, 'd');
  auto exchange = [&](Mesh& mesh, uint32_t peer) {
    for (uint64_t round = 0; round < 20; ++round) {
      std::string came(data.size(), '?');
      MeshHandle both[] = {mesh.Receive(peer, {8, round}, Room(came)),
                           mesh.Send(peer, {8, round}, AsBytes(data))};
      ExpectOk(mesh.WaitAll(both, Soon()));
      EXPECT_TRUE(came == data);
      if (peer == 1 && round == 10) SendText(mesh, peer, {7, 7}, "between");
    }
  };
  SendText(*a_, 1, {7, 7}, "before");
  std::thread there([&] { exchange(*b_, 0); });
  exchange(*a_, 1);
  there.join();
  SendText(*a_, 1, {7, 7}, "after");
  patient.join();
  EXPECT_EQ(heard, (std::vector<std::string>{"before", "between", "after"}));
}

// It waits so long that the thread of the mesh rests, and when it returns it finds that it need not
// wait any more: the thread that waits for a message must drive again.
TEST_F(MeshPair, WhoReturnsForNothingLetsAnotherThreadDrive) {
  std::string heard, data(100'000, '?');
  std::thread patient([&] {
    Result<MeshMessage> message = b_->ReceiveSmall(kAnyMeshPeer, {7, 7}, Soon());
    heard = message.ok() ? message->bytes : message.status().message();
  });
  MeshHandle received = b_->Receive(0, {1, 1}, Room(data));
  std::thread sender([&] {
    EXPECT_FALSE(a_->ReceiveSmall(1, {9, 9}, SteadyNow() + std::chrono::milliseconds(20)).ok());
    const std::string sent(data.size(), 'd');
    MeshHandle handle = a_->Send(1, {1, 1}, AsBytes(sent));
    ExpectOk(a_->Wait(handle, Soon()));
  });
  ExpectOk(b_->WaitAll({&received, 1}, Soon(), {}, MeshAfter::kReturns));
  ExpectOk(b_->WaitAll({}, Soon()));
  sender.join();
  SendText(*a_, 1, {7, 7}, "hello");
  patient.join();
  EXPECT_EQ(heard, "hello");
}

TEST_F(MeshPair, WhatStartsTogetherIsDoneTogetherOrFailsAlone) {
  std::string large(300'000, 'l'), small = "small", came_large(large.size(), '?'),
                                   came_small(5, '?'), nobody(1, '?');
  MeshHandle sent[2], received[2], to_itself;
  std::thread other([&] {
    {
      MeshStart start(*b_);
      received[0] = start.Receive(0, {1, 1}, Room(came_large));
      received[1] = start.Receive(0, {1, 2}, Room(came_small));
    }
    ExpectOk(b_->WaitAll(received, Soon()));
  });
  {
    MeshStart start(*a_);
    sent[0] = start.Send(1, {1, 1}, AsBytes(large));
    to_itself = start.Receive(0, {1, 3}, Room(nobody));
    sent[1] = start.Send(1, {1, 2}, AsBytes(small));
  }
  ExpectOk(a_->WaitAll(sent, Soon()));
  EXPECT_EQ(a_->Wait(to_itself, Soon()).code(), Code::kInvalidArgument);
  other.join();
  EXPECT_TRUE(came_large == large);
  EXPECT_EQ(came_small, small);
}

// A way to rank 1 that lets the handshake begin and then keeps what comes until it is told to go
// on: as a relay may.
class SlowRoute {
 public:
  explicit SlowRoute(KvStore& directory) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    Result<MeshRecord> record =
        DecodeMeshRecord(directory.Get(MeshKvKey(1), std::chrono::seconds(60)).value());
    const std::string endpoint = record->endpoints.at(0);
    target_ = std::stoi(endpoint.substr(endpoint.rfind(':') + 1));
    sockaddr_in here = LoopbackAt(0);
    ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&here), sizeof here);
    ::listen(listener_.get(), 1);
    socklen_t length = sizeof here;
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&here), &length);
    record->endpoints = {"127.0.0.1:" + std::to_string(ntohs(here.sin_port))};
    EXPECT_TRUE(directory_.Put(MeshKvKey(1), EncodeMeshRecord(*record)).ok());
    thread_ = std::thread([this] { Run(); });
  }
  ~SlowRoute() {
    GoOn();
    thread_.join();
  }
  // Where the other side finds rank 1.
  KvStore& directory() { return directory_; }
  void GoOn() {
    if (!std::exchange(told_, true)) go_on_.set_value();
  }

 private:
  static sockaddr_in LoopbackAt(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  static bool Pass(int from, int to) {
    std::array<char, 4096> bytes;
    const ssize_t got = ::recv(from, bytes.data(), bytes.size(), 0);
    return got > 0 && ::send(to, bytes.data(), static_cast<size_t>(got), MSG_NOSIGNAL) == got;
  }
  void Run() {
    UniqueFd in(::accept(listener_.get(), nullptr, nullptr));
    UniqueFd out(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in there = LoopbackAt(target_);
    ::connect(out.get(), reinterpret_cast<sockaddr*>(&there), sizeof there);
    Pass(in.get(), out.get());
    Pass(out.get(), in.get());
    go_on_.get_future().wait();
    while (Pass(in.get(), out.get())) {
    }
  }

  MemoryKvStore directory_;
  UniqueFd listener_;
  int target_ = 0;
  bool told_ = false;
  std::promise<void> go_on_;
  std::thread thread_;
};

TEST(MeshTest, WhoLeavesWhileItsConnectionIsTakenIsHeardToTheEnd) {
  MemoryKvStore directory;
  std::unique_ptr<Mesh> stays = OpenMesh(OptionsOf(1), directory);
  SlowRoute way(directory);
  std::unique_ptr<Mesh> leaves = OpenMesh(OptionsOf(0), way.directory());
  ASSERT_TRUE(directory.Put(MeshKvKey(0), EncodeMeshRecord(leaves->record())).ok());
  SendText(*stays, 0, {1, 1}, "we are connected");
  EXPECT_EQ(ReceiveText(*leaves, 1, {1, 1}, 16), "we are connected");
  SendText(*leaves, 1, {2, 2}, "the last word");
  leaves.reset();
  std::string heard(13, '?');
  MeshHandle received = stays->Receive(0, {2, 2}, Room(heard));
  EXPECT_EQ(stays->Wait(received, SteadyNow() + std::chrono::milliseconds(100)).code(),
            Code::kInProgress);
  way.GoOn();
  ExpectOk(stays->Wait(received, Soon()));
  EXPECT_EQ(heard, "the last word");
  MeshHandle more = stays->Receive(0, {2, 2}, Room(heard));
  EXPECT_EQ(stays->Wait(more, Soon()).code(), Code::kAborted);
}

TEST_F(MeshPair, LargeMessagesGoOverSeveralStripesAtOnce) {
  constexpr uint32_t kStripes = 4;
  std::vector<std::string> sent, received;
  std::vector<MeshHandle> from, to;
  for (uint32_t stripe = 0; stripe < kStripes; ++stripe) {
    sent.emplace_back(2'000'000 + stripe, static_cast<char>('a' + stripe));
    received.emplace_back(sent.back().size(), '?');
  }
  for (uint32_t stripe = 0; stripe < kStripes; ++stripe) {
    to.push_back(b_->Receive(0, {1, 1}, Room(received[stripe]), stripe));
    from.push_back(a_->Send(1, {1, 1}, AsBytes(sent[stripe]), stripe));
  }
  std::thread sender([&] { ExpectOk(a_->WaitAll(from, Soon())); });
  ExpectOk(b_->WaitAll(to, Soon()));
  sender.join();
  EXPECT_TRUE(received == sent);
  to.clear();  // handles end before their mesh
  b_.reset();  // leaves in peace
  const uint32_t group[] = {1};
  std::string nothing(1, '?');
  MeshHandle late = a_->Receive(1, {1, 2}, Room(nothing), 2);
  const Status left = a_->WaitAll({&late, 1}, Soon(), group);
  EXPECT_NE(left.message().find("has left"), std::string::npos) << left.message();
}

TEST_F(MeshPair, NobodyTalksToHimself) {
  MeshHandle handle = a_->Send(0, {}, {});
  EXPECT_EQ(a_->Wait(handle, Soon()).code(), Code::kInvalidArgument);
}

TEST_F(MeshPair, TwoThreadsWaitAtOnce) {
  auto serve = [&](Mesh& mesh, uint32_t peer, uint64_t channel) {
    for (int n = 0; n < 200; ++n) {
      SendText(mesh, peer, {channel, 0}, std::to_string(n % 10));
      EXPECT_EQ(ReceiveText(mesh, peer, {channel, 0}, 1), std::to_string(n % 10));
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t channel : {1, 2}) {
    threads.emplace_back([&, channel] { serve(*a_, 1, channel); });
    threads.emplace_back([&, channel] { serve(*b_, 0, channel); });
  }
  for (std::thread& thread : threads) thread.join();
}

// ---- who may talk

void ExpectSilence(Mesh& mesh, const std::string& bytes) {
  Stranger stranger(mesh);
  stranger.Send(bytes);
  EXPECT_EQ(stranger.ReadOut(), "") << "a stranger was told something";
}

std::string HelloOf(const std::string& key, uint64_t generation, uint32_t from, uint32_t to) {
  return MeshInitiator({key, generation, from}, to).hello();
}

TEST_F(MeshPair, StrangersHearNothing) {
  const std::string key = OptionsOf(0).job_key;
  ExpectSilence(*a_, std::string(92, 'x'));
  ExpectSilence(*a_, "GET / HTTP/1.1\r\nHost: a host that has a name of a certain length\r\n\r\n" +
                         std::string(92, ' '));
  ExpectSilence(*a_, HelloOf("another key", 7, 1, 0));
  ExpectSilence(*a_, HelloOf(key, 8, 1, 0));  // another generation
  ExpectSilence(*a_, HelloOf(key, 7, 0, 1));  // meant for another rank
  std::string changed = HelloOf(key, 7, 1, 0);
  changed[16] ^= 4;  // says that it is another rank
  ExpectSilence(*a_, changed);
  Greet(*a_, 0, *b_, 1);
}

TEST_F(MeshPair, ARecordedHelloIsNotEnough) {
  Stranger stranger(*a_);
  stranger.Send(HelloOf(OptionsOf(0).job_key, 7, 1, 0));
  stranger.Receive(64);
  stranger.Send(std::string(32, 'p'));
  EXPECT_EQ(stranger.ReadOut(), "");
  Greet(*a_, 0, *b_, 1);
}

TEST(MeshTest, HalfOpenConnectionsEndInTime) {
  MemoryKvStore directory;
  MeshOptions options = OptionsOf(0);
  options.handshake_timeout = std::chrono::milliseconds(20);
  std::unique_ptr<Mesh> a = OpenMesh(options, directory);
  std::unique_ptr<Mesh> b = OpenMesh(OptionsOf(1), directory);
  Stranger silent(*a), slow(*a);
  slow.Send(HelloOf(options.job_key, 7, 1, 0).substr(0, 40));
  EXPECT_EQ(silent.ReadOut(), "");
  EXPECT_EQ(slow.ReadOut(), "");
  Greet(*a, 0, *b, 1);
}

TEST_F(MeshPair, ACrowdOfStrangersKeepsNobodyOut) {
  std::vector<std::unique_ptr<Stranger>> crowd;
  for (int i = 0; i < 400; ++i) crowd.push_back(std::make_unique<Stranger>(*a_));
  Greet(*a_, 0, *b_, 1);
}

TEST(MeshTest, TheWrongKeyIsASentenceForWhoDials) {
  MemoryKvStore directory;
  MeshOptions options = OptionsOf(1);
  options.job_key = "another key";
  options.connect_timeout = std::chrono::milliseconds(300);
  std::unique_ptr<Mesh> a = OpenMesh(OptionsOf(0), directory);
  std::unique_ptr<Mesh> b = OpenMesh(options, directory);
  MeshHandle handle = b->Send(0, {}, kOneByte);
  Status status = b->Wait(handle, Soon());
  EXPECT_EQ(status.code(), Code::kAborted);
  EXPECT_NE(status.message().find("rank 1 cannot reach rank 0 (127.0.0.1:"), std::string::npos)
      << status.message();
}

TEST(MeshTest, WithoutAKeyNothingIsOpened) {
  MemoryKvStore directory;
  MeshOptions options = OptionsOf(1);
  options.job_key.clear();
  EXPECT_EQ(Mesh::Open(options, directory).status().code(), Code::kInvalidArgument);
}

// ---- ends

TEST_F(MeshPair, APeerThatLeavesIsNamed) {
  Greet(*a_, 0, *b_, 1);
  std::string room(1, '?');
  MeshHandle received = a_->Receive(1, {5, 5}, Room(room));
  SendText(*b_, 0, {5, 6}, "last words");
  b_.reset();
  Status status = a_->Wait(received, Soon());
  EXPECT_EQ(status.code(), Code::kAborted);
  EXPECT_NE(status.message().find("rank 1 at 127.0.0.1:"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("has left"), std::string::npos) << status.message();
  EXPECT_EQ(ReceiveText(*a_, 1, {5, 6}, 10), "last words");
  MeshHandle sent = a_->Send(1, {5, 5}, kOneByte);
  EXPECT_EQ(a_->Wait(sent, Soon()).code(), Code::kAborted);
}

// A process that plays rank 1 by hand, proves the key and then dies in the middle of a message.
TEST(MeshTest, WhoLeavesInPeaceWithoutAWordToUsEndsNoWaitForOthers) {
  MemoryKvStore directory;
  auto a = OpenMesh(OptionsOf(0), directory), b = OpenMesh(OptionsOf(1), directory),
       c = OpenMesh(OptionsOf(2), directory);
  SendText(*a, 1, {1, 1}, "hi");
  EXPECT_EQ(ReceiveText(*b, 0, {1, 1}, 2), "hi");
  b.reset();  // it has never had anything to say to us
  const std::array<uint32_t, 2> group{1, 2};
  std::string text(2, '\0');
  MeshHandle received = a->Receive(2, {2, 1}, Room(text));
  EXPECT_EQ(a->Wait(received, SteadyNow() + std::chrono::milliseconds(200), group).code(),
            Code::kInProgress);
  SendText(*c, 0, {2, 1}, "ho");
  ExpectOk(a->Wait(received, Soon(), group));
  EXPECT_EQ(text, "ho");
}

TEST_F(MeshPair, APeerThatDiesInTheMiddleOfAMessageIsNamed) {
  std::string room(100'000, '?');
  MeshHandle received = a_->Receive(1, {5, 5}, Room(room));
  {
    Stranger rank1(*a_);
    MeshInitiator initiator({OptionsOf(0).job_key, 7, 1}, 0);
    rank1.Send(initiator.hello());
    rank1.Send(*initiator.Receive(rank1.Receive(64)));
    MeshHeader header = EncodeMeshHeader({MeshFrameType::kData, 100'000, {5, 5}, 1});
    rank1.Send(std::string(reinterpret_cast<char*>(header.data()), header.size()) +
               std::string(50'000, 'x'));
  }
  Status status = a_->Wait(received, Soon());
  EXPECT_EQ(status.code(), Code::kAborted);
  EXPECT_NE(status.message().find("is gone: it closed the connection"), std::string::npos)
      << status.message();
}

TEST_F(MeshPair, APeerThatBreaksTheRulesIsLost) {
  for (const std::string& rubbish : {std::string(64, 'x'), std::string(64, '\0')}) {
    MemoryKvStore directory;
    std::unique_ptr<Mesh> mesh = OpenMesh(OptionsOf(0), directory);
    std::string room(1, '?');
    MeshHandle received = mesh->Receive(1, {5, 5}, Room(room));
    Stranger rank1(*mesh);
    MeshInitiator initiator({OptionsOf(0).job_key, 7, 1}, 0);
    rank1.Send(initiator.hello());
    rank1.Send(*initiator.Receive(rank1.Receive(64)));
    rank1.Send(rubbish);
    EXPECT_EQ(rank1.ReadOut(), "");
    Status status = mesh->Wait(received, Soon());
    EXPECT_NE(status.message().find("no frame of the mesh"), std::string::npos) << status.message();
  }
}

TEST_F(MeshPair, AbortFromAnotherThreadEndsEveryWait) {
  Greet(*a_, 0, *b_, 1);
  std::string room(1'000'000, '?'), large(1'000'000, 'l');
  std::vector<std::thread> waiters;
  waiters.emplace_back([&] {
    MeshHandle handle = a_->Receive(1, {5, 5}, Room(room));
    EXPECT_EQ(a_->Wait(handle, Soon()).message(), "enough");
  });
  waiters.emplace_back([&] {
    MeshHandle handle = a_->Send(1, {5, 6}, AsBytes(large));
    EXPECT_EQ(a_->Wait(handle, Soon()).message(), "enough");
  });
  waiters.emplace_back([&] {
    EXPECT_EQ(a_->ReceiveSmall(kAnyMeshPeer, {5, 7}, Soon()).status().message(), "enough");
  });
  waiters.emplace_back([&] {
    EXPECT_EQ(b_->ReceiveSmall(kAnyMeshPeer, {5, 7}, Soon()).status().message(),
              "rank 0 gave up: enough");
  });
  a_->Abort(Aborted("enough"));
  for (std::thread& waiter : waiters) waiter.join();
  MeshHandle later = a_->Send(1, {}, {});
  EXPECT_EQ(a_->Wait(later, Soon()).message(), "enough");
}

TEST(MeshTest, NobodyListensThere) {
  MemoryKvStore directory;
  std::unique_ptr<Mesh> a = OpenMesh(OptionsOf(0), directory);
  { std::unique_ptr<Mesh> gone = OpenMesh(OptionsOf(1), directory); }
  MeshHandle handle = a->Send(1, {}, kOneByte);
  Status status = a->Wait(handle, Soon());
  EXPECT_EQ(status.code(), Code::kAborted);
  EXPECT_NE(status.message().find("Connection refused"), std::string::npos) << status.message();
}

TEST(MeshTest, ARankThatNeverComesIsASentence) {
  MemoryKvStore directory;
  MeshOptions options = OptionsOf(0);
  options.connect_timeout = std::chrono::milliseconds(10);
  std::unique_ptr<Mesh> a = OpenMesh(options, directory);
  MeshHandle handle = a->Send(1, {}, kOneByte);
  Status status = a->Wait(handle, Soon());
  EXPECT_NE(status.message().find("rank 1 has not said in time where it listens"),
            std::string::npos)
      << status.message();
}

TEST(MeshTest, ARankThatComesLateIsWaitedFor) {
  MemoryKvStore directory;
  std::unique_ptr<Mesh> a = OpenMesh(OptionsOf(0), directory);
  const std::string early = "early";
  MeshHandle sent = a->Send(1, {1, 1}, AsBytes(early));
  EXPECT_EQ(a->Wait(sent, TimePoint{}).code(), Code::kInProgress);
  std::unique_ptr<Mesh> b = OpenMesh(OptionsOf(1), directory);
  EXPECT_EQ(ReceiveText(*b, 0, {1, 1}, 5), "early");
  ExpectOk(a->Wait(sent, Soon()));
}

// ---- where to listen

TEST(MeshTest, Ipv6Loopback) {
  MemoryKvStore directory;
  MeshOptions a_options = OptionsOf(0), b_options = OptionsOf(1);
  a_options.listen.addresses = b_options.listen.addresses = {"::1"};
  Result<std::unique_ptr<Mesh>> a = Mesh::Open(a_options, directory);
  if (!a.ok()) GTEST_SKIP() << "no IPv6 here: " << a.status().message();
  std::unique_ptr<Mesh> b = OpenMesh(b_options, directory);
  EXPECT_EQ((*a)->record().endpoints[0].rfind("[::1]:", 0), 0u);
  Greet(**a, 0, *b, 1);
}

TEST(MeshTest, EveryInterface) {
  MemoryKvStore directory;
  MeshOptions a_options = OptionsOf(0), b_options = OptionsOf(1);
  a_options.listen = b_options.listen = {};
  std::unique_ptr<Mesh> a = OpenMesh(a_options, directory);
  std::unique_ptr<Mesh> b = OpenMesh(b_options, directory);
  Greet(*a, 0, *b, 1);
}

// A socket for both families tells the IPv4 addresses of peers as IPv6 ones.
TEST(MeshTest, APeerThatDialledIsKnownByAnAddressToListenOn) {
  MemoryKvStore directory;
  MeshOptions b_options = OptionsOf(1);
  b_options.listen = {};
  std::unique_ptr<Mesh> a = OpenMesh(OptionsOf(0), directory);
  std::unique_ptr<Mesh> b = OpenMesh(b_options, directory);
  SendText(*a, 1, {1, 1}, "hi");
  EXPECT_EQ(ReceiveText(*b, 0, {1, 1}, 2), "hi");
  const Result<MeshAddress> seen = ParseMeshAddress(b->AddressOf(0), 0);
  ASSERT_TRUE(seen.ok()) << b->AddressOf(0);
  EXPECT_EQ(b->AddressOf(0).find("ffff"), std::string::npos) << b->AddressOf(0);
}

TEST(MeshTest, AProofOfTheWayDoesNotUseTheWayBack) {
  MemoryKvStore directory;
  MeshOptions b_options = OptionsOf(1);
  b_options.proves_routes = true;
  std::unique_ptr<Mesh> a = OpenMesh(OptionsOf(0), directory);
  std::unique_ptr<Mesh> b = OpenMesh(b_options, directory);
  SendText(*a, 1, {1, 1}, "hi");
  EXPECT_EQ(ReceiveText(*b, 0, {1, 1}, 2), "hi");
  {  // now the directory leads to a place where nobody listens
    MemoryKvStore other;
    std::unique_ptr<Mesh> gone = OpenMesh(OptionsOf(0), other);
    ASSERT_TRUE(directory.Put(MeshKvKey(0), EncodeMeshRecord(gone->record())).ok());
  }
  MeshHandle sent = b->Send(0, {1, 1}, kOneByte);
  const Status status = b->Wait(sent, Soon());
  EXPECT_NE(status.message().find("Connection refused"), std::string::npos) << status.message();
}

TEST(MeshTest, ThePortIsOfTheRangeAndAFullRangeIsASentence) {
  MemoryKvStore directory;
  std::unique_ptr<Mesh> first = OpenMesh(OptionsOf(0), directory);
  uint16_t port = static_cast<uint16_t>(
      std::stoi(first->record().endpoints[0].substr(std::strlen("127.0.0.1:"))));
  MeshOptions options = OptionsOf(1);
  options.listen.first_port = options.listen.last_port = port;
  Result<std::unique_ptr<Mesh>> second = Mesh::Open(options, directory);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().message(),
            "rank 1 cannot listen on 127.0.0.1 because none of the ports " + std::to_string(port) +
                "-" + std::to_string(port) +
                " is free for it; allow a wider range of ports, or end what listens there");
  first.reset();
  second = Mesh::Open(options, directory);
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ((*second)->record().endpoints[0], "127.0.0.1:" + std::to_string(port));
}

TEST(MeshTest, WhatIsNoAddressIsASentence) {
  MemoryKvStore directory;
  MeshOptions options = OptionsOf(1);
  options.listen.addresses = {"eth0"};
  EXPECT_EQ(Mesh::Open(options, directory).status().message(), "'eth0' is no numeric address");
  options = OptionsOf(1);
  options.listen.first_port = 10;
  EXPECT_EQ(Mesh::Open(options, directory).status().code(), Code::kInvalidArgument);
}

// ---- the pure parts

TEST(MeshAddressTest, RecordsSurviveTheDirectory) {
  MeshRecord record{"boot.1", {"10.0.0.1:4711", "[2001:db8::1]:4711", "127.0.0.1:4711"}};
  Result<MeshRecord> read = DecodeMeshRecord(EncodeMeshRecord(record));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->machine, record.machine);
  EXPECT_EQ(read->endpoints, record.endpoints);
  for (const char* bad : {"", "m", "m ", "m 10.0.0.1", "m 10.0.0.1:0", "m 10.0.0.1:99999", "m x:1",
                          "m 1.2.3.4:5x", " 1.2.3.4:5"}) {
    EXPECT_FALSE(DecodeMeshRecord(bad).ok()) << bad;
  }
}

TEST(MeshAddressTest, LoopbackIsForTheSameMachineAlone) {
  MeshRecord record{"boot.1", {"10.0.0.1:1", "127.0.0.1:1", "[::1]:1"}};
  std::vector<MeshAddress> here = Reachable(record, "boot.1"), there = Reachable(record, "boot.2");
  ASSERT_EQ(here.size(), 2u);
  EXPECT_EQ(here[0].Text(), "127.0.0.1:1");
  EXPECT_EQ(here[1].Text(), "[::1]:1");
  ASSERT_EQ(there.size(), 1u);
  EXPECT_EQ(there[0].Text(), "10.0.0.1:1");
  EXPECT_EQ(Reachable({"boot.1", {"10.0.0.1:1"}}, "boot.1").size(), 1u);
}

TEST(MeshFrameTest, HeadersSurviveTheWireAndRubbishDoesNot) {
  MeshFrame frame{MeshFrameType::kData, 123'456'789, {42, 77}, 5};
  MeshHeader header = EncodeMeshHeader(frame);
  Result<MeshFrame> read = DecodeMeshHeader(header.data());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->bytes, frame.bytes);
  EXPECT_EQ(read->tag, frame.tag);
  for (size_t i = 0; i < 8; ++i) {  // magic and type
    MeshHeader bad = header;
    bad[i] ^= std::byte{0x80};
    EXPECT_FALSE(DecodeMeshHeader(bad.data()).ok()) << i;
  }
  EXPECT_EQ(read->number, frame.number);
  EXPECT_FALSE(DecodeMeshHeader(EncodeMeshHeader({MeshFrameType::kReady, 1, {}}).data()).ok());
  EXPECT_FALSE(DecodeMeshHeader(EncodeMeshHeader({MeshFrameType::kReady, 0, {}, 1}).data()).ok());
  EXPECT_FALSE(DecodeMeshHeader(EncodeMeshHeader({MeshFrameType::kData, 0, {}, 0}).data()).ok());
  EXPECT_FALSE(DecodeMeshHeader(EncodeMeshHeader({MeshFrameType::kGone, 1, {}, 1}).data()).ok());
  EXPECT_FALSE(
      DecodeMeshHeader(EncodeMeshHeader({MeshFrameType::kBye, kMaxByeBytes + 1, {}, 1}).data())
          .ok());
  EXPECT_FALSE(
      DecodeMeshHeader(EncodeMeshHeader({MeshFrameType::kData, kMaxMeshMessage + 1, {}, 1}).data())
          .ok());
}

// Frames of slot 1 through a window of five bytes, all others straight to memory.
class WindowSink final : public MeshSink {
 public:
  Result<MeshPlace> Begin(const MeshFrame& frame) override {
    straight_.assign(frame.bytes, '?');
    std::string& to = frame.tag.slot == 1 ? window_ : straight_;
    return MeshPlace{reinterpret_cast<std::byte*>(to.data()),
                     frame.tag.slot == 1 ? window_.size() : SIZE_MAX};
  }
  void Consume(size_t count) override { heard += window_.substr(0, count) + "/"; }
  Status End(const MeshFrame& frame) override {
    heard += frame.tag.slot == 1 ? "." : straight_ + ".";
    return Status::Ok();
  }
  std::string heard;

 private:
  std::string window_ = std::string(5, '?'), straight_;
};

TEST(MeshFrameTest, AWindowIsTakenWhenItIsFullAndAtTheEndHoweverTheBytesCome) {
  std::string wire;
  uint64_t number = 0;
  const auto add = [&](uint64_t slot, const std::string& payload) {
    const MeshHeader header =
        EncodeMeshHeader({MeshFrameType::kData, payload.size(), {7, slot}, ++number});
    wire.append(reinterpret_cast<const char*>(header.data()), header.size()) += payload;
  };
  add(1, "twelve bytes");
  add(2, "straight");
  add(1, "tenletters");
  add(1, "four");
  for (size_t piece = 1; piece <= wire.size(); ++piece) {
    WindowSink sink;
    MeshReader reader(sink);
    std::array<iovec, 2> room;
    for (std::string_view left = wire; !left.empty();) {
      const size_t pieces = reader.Room(&room);
      size_t filled = 0;
      for (size_t i = 0; i < pieces; ++i) {
        const size_t count = std::min({room[i].iov_len, left.size(), piece - filled});
        std::memcpy(room[i].iov_base, left.data(), count);
        left.remove_prefix(count);
        filled += count;
      }
      ASSERT_GT(filled, 0U);
      ExpectOk(reader.Filled(filled));
    }
    ASSERT_EQ(sink.heard, "twelv/e byt/es/.straight.tenle/tters/.four/.") << piece;
  }
}

// Where 1 to 31 bytes stand between the places of a source and its target in their pages, the
// latter's behind, some processors copy at a tenth of their speed.
TEST(MeshFrameTest, PayloadsOfAllocationsAreCopiedToSocketsAtFullSpeed) {
  for (const size_t place : {0U, 16U, 64U}) {  // of memory from mmap, malloc and PyTorch
    const size_t behind = (kMeshHeaderBytes - place) % 4096;
    EXPECT_TRUE(behind == 0 || behind >= 32) << place;
  }
}

TEST(MeshHandshakeTest, EachSideIsProven) {
  MeshIdentity a{"key", 1, 5}, b{"key", 1, 6};
  MeshInitiator initiator(a, 6);
  MeshResponder responder(b);
  std::string answer;
  for (char c : initiator.hello()) {  // in the smallest pieces
    Result<std::string> part = responder.Receive(std::string(1, c));
    ASSERT_TRUE(part.ok());
    answer += *part;
  }
  EXPECT_EQ(answer.size(), 64u);
  Result<std::string> proof = initiator.Receive(answer);
  ASSERT_TRUE(proof.ok());
  ASSERT_TRUE(responder.Receive(*proof).ok());
  EXPECT_EQ(responder.Wanted(), 0u);
  EXPECT_EQ(responder.peer(), 5u);
}

TEST(MeshHandshakeTest, TheHelloNamesTheStripe) {
  MeshIdentity a{"key", 1, 5}, b{"key", 1, 6};
  MeshResponder responder(b), refuses(b);
  ASSERT_TRUE(responder.Receive(MeshInitiator(a, 6, 3).hello()).ok());
  EXPECT_EQ(responder.from(), (MeshRoute{5, 3}));
  EXPECT_FALSE(refuses.Receive(MeshInitiator(a, 6, kMostMeshStripes).hello()).ok());
}

TEST(MeshHandshakeTest, EveryBitCounts) {
  MeshIdentity a{"key", 1, 5}, b{"key", 1, 6};
  MeshInitiator initiator(a, 6);
  for (size_t i = 0; i < initiator.hello().size(); ++i) {
    std::string hello = initiator.hello();
    hello[i] ^= 1;
    EXPECT_FALSE(MeshResponder(b).Receive(hello).ok()) << i;
  }
  MeshResponder responder(b);
  std::string answer = *responder.Receive(initiator.hello());
  for (size_t i = 0; i < answer.size(); ++i) {
    MeshInitiator other = initiator;
    std::string changed = answer;
    changed[i] ^= 1;
    EXPECT_FALSE(other.Receive(changed).ok()) << i;
  }
  std::string proof = *initiator.Receive(answer);
  for (size_t i = 0; i < proof.size(); ++i) {
    MeshResponder other = responder;
    std::string changed = proof;
    changed[i] ^= 1;
    EXPECT_FALSE(other.Receive(changed).ok()) << i;
  }
}

TEST(MeshHandshakeTest, ASystemWithoutRandomNumbersIsASentenceAndNoWait) {
  MeshIdentity a{"key", 1, 5}, b{"key", 1, 6};
  const std::string hello = MeshInitiator(a, 6).hello();
  for (RandomBytes none : {RandomBytes([](void*, size_t) -> ssize_t {
                             errno = ENOSYS;
                             return -1;
                           }),
                           RandomBytes([](void*, size_t) -> ssize_t {
                             errno = EINTR;  // again and again
                             return -1;
                           }),
                           RandomBytes([](void*, size_t) -> ssize_t { return 0; })}) {
    a.random_bytes = b.random_bytes = none;
    MeshInitiator initiator(a, 6);
    EXPECT_TRUE(initiator.hello().empty());
    EXPECT_NE(initiator.status().message().find("random numbers"), std::string::npos);
    EXPECT_FALSE(MeshResponder(b).Receive(hello).ok());
  }
  // Few at a time, and interrupted in between, is no failure.
  a.random_bytes = [](void* to, size_t) -> ssize_t {
    static int calls = 0;
    if (++calls % 2 == 0) {
      errno = EINTR;
      return -1;
    }
    *static_cast<char*>(to) = 'x';
    return 1;
  };
  EXPECT_TRUE(MeshInitiator(a, 6).status().ok());
  EXPECT_EQ(MeshInitiator(a, 6).hello().size(), hello.size());
}

TEST(MeshHandshakeTest, WhoHasNoKeyCannotAnswerWithTheHelloItself) {
  MeshIdentity a{"key", 1, 5};
  MeshInitiator one(a, 6), two({"key", 1, 6}, 5);
  std::string reflected = one.hello().substr(28);  // nonce and MAC
  EXPECT_FALSE(one.Receive(reflected).ok());
  EXPECT_FALSE(two.Receive(one.hello().substr(28)).ok());
}

}  // namespace
}  // namespace hvd
