// The reaction of hvdrun to a signal.
#include "launcher/driver/job_signals.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace hvd {
namespace {

TEST(ActionFor, EndsTheJobOnceAndThenHvdrun) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGALRM}) {
    EXPECT_EQ(ActionFor(signal, /*job_over=*/false), SignalAction::kInterrupt) << signal;
    EXPECT_EQ(ActionFor(signal, /*job_over=*/true), SignalAction::kLeave) << signal;
  }
}

TEST(ActionFor, StopsAndContinuesAtAnyTime) {
  for (bool over : {false, true}) {
    EXPECT_EQ(ActionFor(SIGTSTP, over), SignalAction::kPause);
    EXPECT_EQ(ActionFor(SIGCONT, over), SignalAction::kResume);
  }
}

TEST(ActionFor, PassesOnWhatWarnsAsLongAsThereAreRanks) {
  for (int signal : {SIGUSR1, SIGUSR2}) {
    EXPECT_EQ(ActionFor(signal, /*job_over=*/false), SignalAction::kForward) << signal;
    EXPECT_EQ(ActionFor(signal, /*job_over=*/true), SignalAction::kNothing) << signal;
  }
}

// Signals that go to the calling thread are delivered before raise() returns, so that one poll sees
// them.
TEST(JobSignals, ReportsSignalsUntilItIsClosedAndLeavesIgnoredOnesAlone) {
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGHUP, nullptr, &before), 0);
  ::signal(SIGHUP, SIG_IGN);
  asio::io_context io;
  std::vector<int> seen;
  JobSignals signals(io, [&](int signal) { seen.push_back(signal); });
  signals.Open();
  ::raise(SIGHUP);
  ::raise(SIGTERM);
  while (seen.empty()) io.run_one();
  io.poll();
  EXPECT_EQ(seen, std::vector<int>{SIGTERM});
  signals.Close();
  struct sigaction after {};
  ASSERT_EQ(::sigaction(SIGTERM, nullptr, &after), 0);
  EXPECT_EQ(after.sa_handler, SIG_DFL);
  ::sigaction(SIGHUP, &before, nullptr);
}

}  // namespace
}  // namespace hvd
