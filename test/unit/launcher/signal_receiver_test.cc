// Which process of a worker gets a signal that warns.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <set>

#include "launcher/agent/workers/worker_signals.h"

namespace hvd {
namespace {

// A shell (10) that started conda (20), which started Python (30) with two workers (40, 41); beside
// it a logger (21).
const std::vector<ProcessInfo> kProcesses = {
    {1, 0, 1, 'S', 0},    {10, 1, 10, 'S', 0},  {20, 10, 10, 'S', 0}, {21, 10, 10, 'S', 0},
    {30, 20, 10, 'S', 0}, {40, 30, 10, 'S', 0}, {41, 30, 10, 'S', 0}};

pid_t Receiver(pid_t rank, std::set<pid_t> handling) {
  const auto found =
      SignalReceiver(10, rank, kProcesses, [&](pid_t pid) { return handling.contains(pid); });
  return found ? found->pid : 0;
}

TEST(SignalReceiver, IsTheRanksOwnProcessAndNoneOfItsWorkers) {
  EXPECT_EQ(Receiver(30, {30, 40, 41}), 30);
  EXPECT_EQ(Receiver(30, {40, 41}), 0) << "only its workers have a handler";
  EXPECT_EQ(Receiver(30, {21}), 0) << "a process beside it";
  EXPECT_EQ(Receiver(30, {}), 0);
}

TEST(SignalReceiver, IsTheFirstThatHandlesItOnTheWayToTheRank) {
  EXPECT_EQ(Receiver(30, {10, 30}), 10) << "trap 'save' USR1";
  EXPECT_EQ(Receiver(30, {20, 30}), 20) << "a launcher script with a handler of its own";
}

TEST(SignalReceiver, IsTheTopmostWhereNoProcessCalledInit) {
  EXPECT_EQ(Receiver(0, {30, 40, 41}), 30);
  EXPECT_EQ(Receiver(0, {40, 41}), 40);
  EXPECT_EQ(Receiver(0, {10}), 10);
  EXPECT_EQ(Receiver(0, {1}), 0) << "above the worker";
  EXPECT_EQ(Receiver(99, {30}), 30) << "the rank has ended";
}

constexpr std::string_view kStatus =
    "Name:\tpython3\nSigBlk:\t0000000000000800\nSigIgn:\t0000000001001000\n"
    "SigCgt:\t0000000000000202\n";

TEST(SignalReceiver, TheMaskOfTheKernelSaysWhatIsBlocked) {
  EXPECT_TRUE(BlocksSignal(kStatus, SIGUSR2));
  EXPECT_FALSE(BlocksSignal(kStatus, SIGUSR1));
  EXPECT_FALSE(BlocksSignal("", SIGUSR1));
}

TEST(SignalReceiver, KnowsProgramsThatPassSignalsOn) {
  EXPECT_TRUE(PassesSignalsOn("Name:\tuv\nUmask:\t0022\n"));
  EXPECT_TRUE(PassesSignalsOn("Name:\tdumb-init\n"));
  EXPECT_FALSE(PassesSignalsOn(kStatus));
  EXPECT_FALSE(PassesSignalsOn("Name:\tuvicorn\n"));
  EXPECT_FALSE(PassesSignalsOn(""));
}

TEST(SignalReceiver, OwnProcess) {
  EXPECT_FALSE(SurvivesSignal(::getpid(), SIGUSR2));
  ::signal(SIGUSR2, [](int) {});
  EXPECT_TRUE(SurvivesSignal(::getpid(), SIGUSR2));
  ::signal(SIGUSR2, SIG_DFL);
}

}  // namespace
}  // namespace hvd
