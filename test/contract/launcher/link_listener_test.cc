// Contract of LinkListener: every process of this user that connects reaches the owner, and a
// process without descriptors neither spins nor forgets the one that waits.
#include "launcher/process/links/link_listener.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "test/support/deadline.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;

std::string AddressOf(const char* test) {
  return "hvd.link_listener." + std::to_string(::getpid()) + "." + test;
}

bool RunUntil(asio::io_context& io, const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (!condition() && std::chrono::steady_clock::now() < deadline)
    io.run_one_for(milliseconds(100));
  return condition();
}

// No descriptor is left while one of these lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const UniqueFd next(::dup(STDERR_FILENO));
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(next.get());
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST(LinkListener, HandsOverEachProcessThatConnects) {
  asio::io_context io;
  std::vector<int> pids;
  LinkListener listener(io, [&](const LinkClient& client) { pids.push_back(client.pid); });
  ASSERT_TRUE(listener.Listen(AddressOf("each")).ok());
  const Result<UniqueFd> first = ConnectLink(AddressOf("each"));
  const Result<UniqueFd> second = ConnectLink(AddressOf("each"));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(RunUntil(io, [&] { return pids.size() == 2; }));
  EXPECT_EQ(pids, std::vector<int>({::getpid(), ::getpid()}));
}

TEST(LinkListener, TakesInThoseThatWaitWithoutTheLoop) {
  asio::io_context io;
  int clients = 0;
  LinkListener listener(io, [&](const LinkClient&) { ++clients; });
  listener.AcceptAll();  // it does not listen yet
  ASSERT_TRUE(listener.Listen(AddressOf("now")).ok());
  const Result<UniqueFd> client = ConnectLink(AddressOf("now"));
  ASSERT_TRUE(client.ok());
  listener.AcceptAll();
  EXPECT_EQ(clients, 1);
}

TEST(LinkListener, SaysThatTheAddressIsTaken) {
  asio::io_context io;
  LinkListener one(io, [](const LinkClient&) {}), other(io, [](const LinkClient&) {});
  ASSERT_TRUE(one.Listen(AddressOf("taken")).ok());
  EXPECT_FALSE(other.Listen(AddressOf("taken")).ok());
}

TEST(LinkListener, AnOwnerMayCloseItWhenAClientComes) {
  asio::io_context io;
  int clients = 0;
  LinkListener* self = nullptr;
  LinkListener listener(io, [&](const LinkClient&) {
    ++clients;
    self->Close();
  });
  self = &listener;
  ASSERT_TRUE(listener.Listen(AddressOf("close")).ok());
  const Result<UniqueFd> first = ConnectLink(AddressOf("close"));
  const Result<UniqueFd> second = ConnectLink(AddressOf("close"));
  ASSERT_TRUE(first.ok() && second.ok());
  io.run();  // ends, since nothing is waited for
  EXPECT_EQ(clients, 1);
  EXPECT_FALSE(ConnectLink(AddressOf("close")).ok());
}

TEST(LinkListener, RestsWithoutDescriptorsAndServesTheClientLater) {
  asio::io_context io;
  int clients = 0;
  LinkListener listener(io, [&](const LinkClient&) { ++clients; });
  ASSERT_TRUE(listener.Listen(AddressOf("rest")).ok());
  const Result<UniqueFd> client = ConnectLink(AddressOf("rest"));
  ASSERT_TRUE(client.ok());
  {
    const NoDescriptors none;
    EXPECT_LT(io.run_for(milliseconds(350)), 20U);  // each attempt is one handler or two
    EXPECT_EQ(clients, 0);
  }
  EXPECT_TRUE(RunUntil(io, [&] { return clients == 1; }));
}

}  // namespace
}  // namespace hvd
