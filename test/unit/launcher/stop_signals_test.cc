// Signals to an agent: a second SIGTERM has its default effect from the moment in which somebody
// may have heard of the first; one that warns never has.
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
  StopSignals signals(io,
                      [&](int signal) {
                        asked.push_back(signal);
                        next_one_ends = HasDefaultEffect(SIGTERM);
                        return true;
                      },
                      {});
  signals.Open();
  ASSERT_FALSE(HasDefaultEffect(SIGTERM));
  ASSERT_EQ(::raise(SIGTERM), 0);
  io.run();
  EXPECT_EQ(asked, std::vector<int>{SIGTERM});
  EXPECT_TRUE(next_one_ends);
}

TEST(StopSignals, OneThatWarnsNeverEndsTheAgent) {
  asio::io_context io;
  std::vector<int> warned;
  bool is_request = false;
  StopSignals signals(io, {}, [&](int signal) {
    warned.push_back(signal);
    return is_request;
  });
  signals.OpenWarnings();
  signals.Open();
  for (int signal : {SIGUSR1, SIGUSR2, SIGUSR1}) {
    ASSERT_FALSE(HasDefaultEffect(signal));
    const size_t before = warned.size();
    ASSERT_EQ(::raise(signal), 0);
    while (warned.size() == before) io.run_one();
  }
  EXPECT_EQ(warned, (std::vector<int>{SIGUSR1, SIGUSR2, SIGUSR1}));
  EXPECT_FALSE(HasDefaultEffect(SIGTERM));
  is_request = true;
  ASSERT_EQ(::raise(SIGUSR1), 0);
  while (warned.size() < 4) io.run_one();
  EXPECT_TRUE(HasDefaultEffect(SIGTERM)) << "the job was asked to stop";
  EXPECT_FALSE(HasDefaultEffect(SIGUSR1));
}

TEST(StopSignals, OneThatWasIgnoredStaysIgnored) {
  auto before = ::signal(SIGUSR1, SIG_IGN);
  asio::io_context io;
  StopSignals signals(io, {}, [](int) { return true; });
  signals.OpenWarnings();
  struct sigaction now {};
  ASSERT_EQ(::sigaction(SIGUSR1, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, SIG_IGN);
  ::signal(SIGUSR1, before);
}

}  // namespace
}  // namespace hvd
