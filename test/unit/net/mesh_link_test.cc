#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/mesh/mesh_signs.h"
#include "test/support/deadline.h"

namespace hvd {
namespace {

// Both ends of a connection over loopback.
std::array<UniqueFd, 2> Connected() {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* at = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(listener.get(), at, length), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(::getsockname(listener.get(), at, &length), 0);
  UniqueFd from(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(from.get(), at, length), 0);
  UniqueFd to(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  return {std::move(from), std::move(to)};
}

TEST(MeshLink, KnowsWhatArrivedAndHowFarItIs) {
  const auto [from, to] = Connected();
  std::vector<char> data(20'000, 'x');
  ASSERT_EQ(::send(from.get(), data.data(), data.size(), 0), ssize_t{20'000});
  ASSERT_EQ(::recv(to.get(), data.data(), data.size(), MSG_WAITALL), ssize_t{20'000});
  // It is the kernel's business when it acknowledges them.
  MeshLink link = LinkOver(from.get(), 7);
  for (const TimePoint deadline = SteadyNow() + Scaled(std::chrono::seconds(10));
       link.bytes < 20'000 && SteadyNow() < deadline;)
    link = LinkOver(from.get(), 7);
  EXPECT_EQ(link.rank, 7u);
  EXPECT_GE(link.bytes, 20'000u);
  EXPECT_GT(link.round_trip_us, 0u);
  EXPECT_LT(link.round_trip_us, 60'000'000u);
}

TEST(MeshLink, KnowsNothingOfOtherSockets) {
  UniqueFd other(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const MeshLink link = LinkOver(other.get(), 3);
  EXPECT_EQ(link.rank, 3u);
  EXPECT_EQ(link.bytes, 0u);
  EXPECT_EQ(link.round_trip_us, 0u);
}

}  // namespace
}  // namespace hvd
