#include "launcher/driver/services/forwarded_signals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace hvd {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

TEST(ForwardedSignals, SayThatNoRankHandlesASignalOnceAllHostsAnswered) {
  ForwardedSignals signals;
  const ForwardSignal message = signals.Begin(SIGUSR2, {0, 3});
  EXPECT_EQ(message.number, 1U);
  EXPECT_EQ(signals.Handle(3, "h3", {1, SIGUSR2, 0}, TimePoint()), "");
  EXPECT_EQ(signals.Handle(3, "h3", {1, SIGUSR2, 0}, TimePoint()), "") << "it has answered";
  EXPECT_THAT(signals.Handle(0, "h0", {1, SIGUSR2, 0}, TimePoint()),
              HasSubstr("no rank handles signal 12 (SIGUSR2), so none got it"));
}

TEST(ForwardedSignals, OneRankThatHandlesItIsEnough) {
  ForwardedSignals signals;
  signals.Begin(SIGUSR1, {0, 1});
  EXPECT_EQ(signals.Handle(0, "h0", {1, SIGUSR1, 2}, TimePoint()), "");
  EXPECT_EQ(signals.Handle(1, "h1", {1, SIGUSR1, 0}, TimePoint()), "");
}

TEST(ForwardedSignals, AHostThatIsGoneIsNotAwaited) {
  ForwardedSignals signals;
  signals.Begin(SIGUSR1, {0, 1});
  EXPECT_EQ(signals.Handle(0, "h0", {1, SIGUSR1, 0}, TimePoint()), "");
  EXPECT_NE(signals.HostGone(1, TimePoint()), "");
  EXPECT_EQ(signals.HostGone(1, TimePoint() + seconds(9)), "");
}

TEST(ForwardedSignals, OneLineIsEnoughForASignalThatAllAgentsGot) {
  ForwardedSignals signals;
  EXPECT_THAT(signals.Handle(0, "h0", {0, SIGUSR1, 0}, TimePoint()),
              HasSubstr("the agent on host h0 got signal 10 (SIGUSR1), and no rank there"));
  EXPECT_EQ(signals.Handle(1, "h1", {0, SIGUSR1, 0}, TimePoint()), "");
  EXPECT_EQ(signals.Handle(2, "h2", {0, SIGUSR1, 1}, TimePoint() + seconds(9)), "");
  EXPECT_NE(signals.Handle(1, "h1", {0, SIGUSR1, 0}, TimePoint() + seconds(9)), "");
}

}  // namespace
}  // namespace hvd
