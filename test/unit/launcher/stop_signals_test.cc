// Signals to the agent of an elastic job: the second one has its default effect from the moment in
// which somebody may have heard of the first.
#include "launcher/agent/stop_signals.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <asio/io_context.hpp>
#include <vector>

namespace hvd {
namespace {

bool HasDefaultEffect(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_DFL;
}

TEST(StopSignals, TheNextOneEndsTheAgentOnceTheFirstIsPassedOn) {
  asio::io_context io;
  std::vector<int> asked;
  bool next_one_ends = false;
  StopSignals signals(io, [&](int signal) {
    asked.push_back(signal);
    next_one_ends = HasDefaultEffect(SIGTERM) && HasDefaultEffect(SIGUSR1);
    return true;
  });
  signals.Open();
  ASSERT_FALSE(HasDefaultEffect(SIGTERM));
  ASSERT_EQ(::raise(SIGTERM), 0);
  io.run();
  EXPECT_EQ(asked, std::vector<int>{SIGTERM});
  EXPECT_TRUE(next_one_ends);
}

TEST(StopSignals, OneThatWasIgnoredStaysIgnored) {
  auto before = ::signal(SIGUSR1, SIG_IGN);
  asio::io_context io;
  StopSignals signals(io, [](int) { return true; });
  signals.Open();
  struct sigaction now {};
  ASSERT_EQ(::sigaction(SIGUSR1, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, SIG_IGN);
  ::signal(SIGUSR1, before);
}

}  // namespace
}  // namespace hvd
