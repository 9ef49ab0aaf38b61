// Which signals reach which workers. No process is there, so none but the recorded ones is sent.
#include "launcher/agent/workers/worker_signals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "test/unit/launcher/no_processes.h"

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class WorkerSignalsTest : public testing::Test {
 protected:
  WorkerSignalsTest() {
    workers_.Prepare(StartOfRanks4And5(), {}, {});
    workers_.Start({}, {});
  }

  asio::io_context io_;
  NoProcesses processes_;
  RecordedWorkers owner_;
  WorkerSet workers_{io_, processes_, owner_};
  WorkerSignals signals_{workers_, "0123456789abcdef", {}};
};

TEST_F(WorkerSignalsTest, AStoppedWorkerIsContinuedSoThatItGetsItsSignal) {
  signals_.SignalAll(SIGTERM);
  EXPECT_THAT(processes_.signals,
              ElementsAre(Pair(0, SIGTERM), Pair(1, SIGTERM), Pair(0, SIGCONT), Pair(1, SIGCONT)));
}

TEST_F(WorkerSignalsTest, AJobIsPausedFromSigstopToSigcont) {
  signals_.Handle(SignalWorkers{SIGSTOP});
  EXPECT_TRUE(signals_.paused());
  EXPECT_THAT(processes_.signals, ElementsAre(Pair(0, SIGSTOP), Pair(1, SIGSTOP)));
  signals_.Handle(SignalWorkers{SIGUSR1});
  EXPECT_TRUE(signals_.paused());
  signals_.Handle(SignalWorkers{SIGCONT});
  EXPECT_FALSE(signals_.paused());
}

TEST_F(WorkerSignalsTest, OneWorkerAlone) {
  signals_.Handle(SignalWorker{5, SIGTERM});
  EXPECT_THAT(processes_.signals, ElementsAre(Pair(1, SIGTERM), Pair(1, SIGCONT)));
}

TEST_F(WorkerSignalsTest, AWorkerThatIsNotHereOrHasEndedGetsNone) {
  workers_.OnExit(0, {false, 0}, TimePoint());
  signals_.Handle(SignalWorker{4, SIGTERM});
  signals_.Handle(SignalWorker{3, SIGTERM});
  EXPECT_THAT(processes_.signals, IsEmpty());
}

}  // namespace
}  // namespace hvd
