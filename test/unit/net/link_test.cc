#include "runtime/net/link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <random>
#include <thread>
#include <utility>

#include "runtime/base/text/hex_text.h"
#include "runtime/net/kv_store.h"

namespace hvd {
namespace {

std::vector<LinkMessage> OneOfEach() {
  return {
      LinkHello{kLinkVersion, 3, 77, "secret", 1, 4},
      LinkJoin{},
      LinkGoodbye{5, 1'000'000'000},
      LinkAllocate{1 << 20},
      LinkFetch{9},
      LinkFree{9},
      LinkGeneration{5, 4096, 1, 4, 1, 2, 0, 2, 1, "key", {{"127.0.0.1", "::1"}, 7000, 7010}, 1},
      LinkBroken{5, "rank 1 died"},
      LinkSegment{9, 1 << 20, ""},
      LinkRefused{"no"},
      LinkPut{5, "leader.0", "127.0.0.1:7000"},
      LinkGet{5, "leader.1"},
      LinkValue{5, "leader.1", std::string("\0\xff", 2)},
      LinkLayout{5, {{0, 0, 2}, {1, 0, 2}}},
      LinkDismissed{"host b left the list"}};
}

// Their bytes on the wire, in the order above.
constexpr const char* kBytes[] = {
    "0005000000030000004d000000060000007365637265740100000004000000",
    "01",
    "02050000000000000000ca9a3b00000000",
    "030000100000000000",
    "0409000000",
    "0509000000",
    "06050000000000000000100000000000000100000004000000010000000200000000000000020000000103000000"
    "6b657902090000003132372e302e302e31030000003a3a31581b621b01",
    "0705000000000000000b00000072616e6b20312064696564",
    "0809000000000010000000000000000000",
    "09020000006e6f",
    "0a0500000000000000080000006c65616465722e300e0000003132372e302e302e313a37303030",
    "0b0500000000000000080000006c65616465722e31",
    "0c0500000000000000080000006c65616465722e310200000000ff",
    "0d050000000000000002000000000000000000020000000100000001000000000000000200000001000000",
    "0e14000000686f73742062206c65667420746865206c697374",
};

TEST(Link, EveryMessageHasItsBytes) {
  const std::vector<LinkMessage> all = OneOfEach();
  ASSERT_EQ(all.size(), std::variant_size_v<LinkMessage>);
  ASSERT_EQ(all.size(), std::size(kBytes));
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(HexOf(EncodeLink(all[i])), kBytes[i]) << "type " << all[i].index();
}

TEST(Link, EveryMessageSurvivesTheWire) {
  for (const LinkMessage& message : OneOfEach()) {
    std::string bytes = EncodeLink(message);
    EXPECT_LE(bytes.size(), kMaxLinkMessage);
    Result<LinkMessage> decoded = DecodeLink(bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.status().message();
    EXPECT_EQ(decoded->index(), message.index());
    EXPECT_EQ(EncodeLink(*decoded), bytes);
  }
}

TEST(Link, TooShortTooLongAndUnknownAreErrors) {
  for (const LinkMessage& message : OneOfEach()) {
    std::string bytes = EncodeLink(message);
    for (size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_FALSE(DecodeLink(bytes.substr(0, length)).ok());
    }
    EXPECT_FALSE(DecodeLink(bytes + "x").ok());
  }
  EXPECT_FALSE(DecodeLink("\xff").ok());
}

// So that hvdrun can refuse a libhvd.so of another release with a sentence.
TEST(Link, OfAHelloOfAnotherVersionTheVersionIsRead) {
  std::string bytes = EncodeLink(LinkHello{kLinkVersion + 1, 3, 77, "secret", 1, 4});
  constexpr size_t kThroughVersion = 1 + sizeof(uint32_t);
  for (const std::string& hello : {bytes, bytes + "more", bytes.substr(0, bytes.size() - 8),
                                   bytes.substr(0, kThroughVersion)}) {
    Result<LinkMessage> decoded = DecodeLink(hello);
    ASSERT_TRUE(decoded.ok()) << decoded.status().message();
    EXPECT_EQ(std::get<LinkHello>(*decoded).version, kLinkVersion + 1);
  }
  EXPECT_FALSE(DecodeLink(bytes.substr(0, kThroughVersion - 1)).ok());
}

TEST(Link, LongReasonsAreCutToFit) {
  std::string bytes = EncodeLink(LinkBroken{1, std::string(100000, 'x')});
  EXPECT_LE(bytes.size(), kMaxLinkMessage);
  EXPECT_TRUE(DecodeLink(bytes).ok());
}

TEST(Link, TheLongestMessagesFit) {
  ListenHints listen{std::vector<std::string>(20, std::string(100, '1')), 1, 2};
  LinkGeneration generation{.data_key = std::string(5000, 'k'), .listen = listen};
  std::vector<RankRun> runs(kMaxRunsPerMessage, RankRun{1, 2, 3});
  std::string key(kMaxKvKey, 'k'), value(kMaxKvValue, 'v');
  for (const LinkMessage& message :
       {LinkMessage(generation), LinkMessage(LinkLayout{1, runs}),
        LinkMessage(LinkPut{1, key, value}), LinkMessage(LinkValue{1, key, value})}) {
    std::string bytes = EncodeLink(message);
    EXPECT_LE(bytes.size(), kMaxLinkMessage);
    EXPECT_TRUE(DecodeLink(bytes).ok());
  }
  LinkMessage put = DecodeLink(EncodeLink(LinkPut{1, key, value})).value();
  EXPECT_EQ(std::get<LinkPut>(put).value, value);
  LinkMessage layout = DecodeLink(EncodeLink(LinkLayout{1, runs})).value();
  EXPECT_EQ(std::get<LinkLayout>(layout).runs, runs);
}

TEST(Link, RandomBytesNeverCrash) {
  std::mt19937 random(20240502);
  for (int round = 0; round < 5000; ++round) {
    std::string bytes(random() % 64, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (!bytes.empty()) bytes[0] = static_cast<char>(random() % 16);
    if (Result<LinkMessage> decoded = DecodeLink(bytes); !decoded.ok()) {
      EXPECT_FALSE(decoded.status().message().empty());
    }
  }
}

TEST(Link, DescriptorsTravelWithTheirMessage) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  UniqueFd a(ends[0]), b(ends[1]);
  ASSERT_TRUE(SendLink(a.get(), LinkSegment{1, 10, ""}, a.get()).ok());
  Result<ReceivedLink> received = ReceiveLink(b.get(), true);
  ASSERT_TRUE(received.ok());
  EXPECT_TRUE(received->fd.valid());
  EXPECT_EQ(ReceiveLink(b.get(), false).status().code(), Code::kInProgress);
  a.Reset();
  received->fd.Reset();
  EXPECT_EQ(ReceiveLink(b.get(), true).status().code(), Code::kAborted);
}

TEST(Link, TheDoorSaysWhoCame) {
  const std::string name = "hvd.link_test." + std::to_string(::getpid());
  Result<UniqueFd> listener = ListenLink(name);
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  EXPECT_EQ(AcceptLink(listener->get()).status().code(), Code::kInProgress);
  Result<UniqueFd> client = ConnectLink(name);
  ASSERT_TRUE(client.ok()) << client.status().message();
  Result<LinkClient> visitor = AcceptLink(listener->get());
  ASSERT_TRUE(visitor.ok()) << visitor.status().message();
  EXPECT_EQ(visitor->pid, ::getpid());
  EXPECT_EQ(AcceptLink(listener->get()).status().code(), Code::kInProgress);
}

// A thread's own user, by the kernel's call: the C library's changes that of all threads.
TEST(Link, AnotherUserIsTurnedAwayAtBothEnds) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  const std::string name = "hvd.link_test.users." + std::to_string(::getpid());
  const auto as_nobody = [](auto act) {
    std::thread([&act] {
      ASSERT_EQ(::syscall(SYS_setresuid, -1, 65534, -1), 0);
      act();
    }).join();
  };
  Result<UniqueFd> own = ListenLink(name);
  ASSERT_TRUE(own.ok()) << own.status().message();
  UniqueFd visitor;
  as_nobody([&] {
    Result<UniqueFd> client = ConnectLink(name);  // root may listen for anybody
    ASSERT_TRUE(client.ok()) << client.status().message();
    visitor = std::move(*client);
  });
  EXPECT_EQ(AcceptLink(own->get()).status().code(), Code::kInProgress);

  UniqueFd foreign;
  as_nobody([&] {
    Result<UniqueFd> listener = ListenLink(name + ".foreign");
    ASSERT_TRUE(listener.ok()) << listener.status().message();
    foreign = std::move(*listener);
  });
  EXPECT_EQ(ConnectLink(name + ".foreign").status().code(), Code::kAborted);
}

}  // namespace
}  // namespace hvd
