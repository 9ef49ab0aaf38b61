// The workers of an agent: they are started, forwarded to, recorded and reported again.
#include "launcher/agent/workers/worker_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <cerrno>

#include "test/unit/launcher/no_processes.h"

namespace hvd {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class WorkerSetTest : public testing::Test, public WorkerSetOwner {
 protected:
  void Send(const ToDriver& message) override {
    if (const auto* started = std::get_if<WorkerStarted>(&message))
      sent_.push_back("started " + std::to_string(started->rank));
    if (const auto* not_started = std::get_if<WorkerNotStarted>(&message))
      sent_.push_back("not started " + std::to_string(not_started->rank) + ": " +
                      not_started->reason);
    if (const auto* exited = std::get_if<WorkerExited>(&message)) {
      sent_.push_back("exited " + std::to_string(exited->rank));
      exits_.push_back(*exited);
    }
  }
  void SendOutput(uint32_t rank, OutputStream, std::string_view first,
                  std::string_view second) override {
    if (!first.empty() || !second.empty())
      output_.push_back(std::to_string(rank) + ":" + std::string(first) + std::string(second));
  }
  uint64_t CommitsOf(uint32_t slot) const override { return slot + 100; }
  bool OnWorkerExit(uint32_t, int pid, bool killed) override {
    exit_pids_.push_back(pid);
    return killed;
  }
  void OnWorkerOver() override { ++overs_; }

  // Ranks 4 and 5 in slots 0 and 1.
  void Start() {
    StartJob start = StartOfRanks4And5();
    start.job_id = "0123456789abcdef";
    start.host = "h";
    workers_.Prepare(std::move(start), {}, {});
    workers_.Start({}, {});
  }

  asio::io_context io_;
  NoProcesses processes_;
  WorkerSet workers_{io_, processes_, *this};
  std::vector<std::string> sent_, output_;
  std::vector<WorkerExited> exits_;
  std::vector<int> exit_pids_;
  int overs_ = 0;
};

TEST_F(WorkerSetTest, ReportsWhatCouldBeStartedAndWhatCouldNot) {
  processes_.refused = 1;
  Start();
  EXPECT_THAT(sent_, ElementsAre("started 4", "not started 5: the command was not found (host h)"));
  EXPECT_EQ(workers_.NumberOf(1), 5U);
  EXPECT_TRUE(workers_.AnyRunning());
}

TEST_F(WorkerSetTest, GivesAllWorkersTheMemoryForCommits) {
  StartJob start = StartOfRanks4And5();
  start.ranks.workers = {4, 5};  // an elastic job: more come later
  start.limits.commit_bytes = 1 << 20;
  workers_.Prepare(std::move(start), {}, {});
  workers_.Start({}, {});
  AddWorkers more;
  more.workers = {6};
  more.slots = {{6, 0, 2, 3, 0, 1}};
  workers_.Add(more);
  ASSERT_EQ(processes_.requests.size(), 3U);
  struct stat info {};
  ASSERT_EQ(::fstat(processes_.requests[0].commits_fd, &info), 0);
  EXPECT_EQ(info.st_size, 1 << 20);
  const std::string variable = "HVD_COMMITS=" + std::to_string(kCommitsDescriptor) + "," +
                               std::to_string(info.st_dev) + "," + std::to_string(info.st_ino);
  for (const SpawnRequest& request : processes_.requests) {
    EXPECT_EQ(request.commits_fd, processes_.requests[0].commits_fd);
    EXPECT_THAT(request.environment, Contains(variable));
  }
}

TEST_F(WorkerSetTest, KeepsNoCommitsUnlessItIsAsked) {
  Start();
  for (const SpawnRequest& request : processes_.requests) {
    EXPECT_EQ(request.commits_fd, -1);
    EXPECT_THAT(request.environment, Not(Contains(StartsWith("HVD_COMMITS="))));
  }
}

TEST_F(WorkerSetTest, ForwardsWholeLinesAndTheRestAtTheEnd) {
  Start();
  workers_.OnOutput(0, OutputStream::kStdout, "one\ntw");
  workers_.OnOutput(1, OutputStream::kStderr, "x\n");
  workers_.OnOutput(0, OutputStream::kStdout, "o\n3");
  workers_.OnOutputEnd(0, OutputStream::kStdout);
  EXPECT_THAT(output_, ElementsAre("4:one\n", "5:x\n", "4:two\n", "4:3"));
  EXPECT_EQ(overs_, 1);
}

TEST_F(WorkerSetTest, RecordsAnExitWithTheLastWordsOnStderr) {
  Start();
  workers_.OnOutput(1, OutputStream::kStderr, "boom\n");
  workers_.OnExit(1, {false, 3}, TimePoint(std::chrono::seconds(7)));
  ASSERT_EQ(exits_.size(), 1U);
  EXPECT_EQ(exits_[0].rank, 5U);
  EXPECT_EQ(exits_[0].pid, 101);
  EXPECT_EQ(exits_[0].end.value, 3);
  EXPECT_EQ(exits_[0].noticed_ns, 7'000'000'000);
  EXPECT_EQ(exits_[0].last_stderr, "boom");
  EXPECT_THAT(exit_pids_, ElementsAre(101));
  EXPECT_TRUE(workers_.AnyRunning());
  workers_.OnExit(0, {false, 0}, TimePoint());
  EXPECT_FALSE(workers_.AnyRunning());
}

TEST_F(WorkerSetTest, AsksForTheMemoryOnlyAfterAKillThatWasNotItsOwn) {
  Start();
  workers_.OnExit(0, {true, SIGKILL}, TimePoint());
  workers_.NoteKilling();
  workers_.OnExit(1, {true, SIGKILL}, TimePoint());
  ASSERT_EQ(exits_.size(), 2U);
  EXPECT_TRUE(exits_[0].out_of_memory);
  EXPECT_FALSE(exits_[1].out_of_memory);
}

TEST_F(WorkerSetTest, ReportsStartsAndExitsAgain) {
  processes_.refused = 1;
  Start();
  workers_.OnExit(0, {false, 0}, TimePoint());
  sent_.clear();
  workers_.Resend();
  EXPECT_THAT(sent_, ElementsAre("started 4", "exited 4")) << "a worker that never was is left out";
}

TEST_F(WorkerSetTest, SignalsThoseThatRun) {
  Start();
  workers_.OnExit(0, {false, 0}, TimePoint());
  workers_.Signal(SIGTERM);
  EXPECT_THAT(processes_.signals, ElementsAre(std::pair<uint32_t, int>(1, SIGTERM)));
}

TEST_F(WorkerSetTest, FindsTheRanksThatAreStoppedOrDying) {
  Start();
  std::vector<ProcessInfo> processes(3);
  processes[0].pid = 101;
  processes[0].state = 'T';
  processes[1].pid = 100;
  processes[1].state = 'S';
  processes[2].pid = 999;
  processes[2].state = 'T';
  EXPECT_THAT(workers_.StoppedSlots(processes), ElementsAre(1));
  EXPECT_TRUE(workers_.AnyDying([](pid_t pid) { return pid == 100; }));
  workers_.OnExit(0, {false, 0}, TimePoint());
  EXPECT_FALSE(workers_.AnyDying([](pid_t pid) { return pid == 100; }));
  workers_.OnExit(1, {false, 0}, TimePoint());
  EXPECT_THAT(workers_.StoppedSlots(processes), IsEmpty());
}

TEST_F(WorkerSetTest, ReportsThatNothingCouldBeStarted) {
  StartJob start;
  start.ranks.slots = {{4, 0, 0, 2, 0, 1}, {5, 0, 1, 2, 0, 1}};
  workers_.Prepare(std::move(start), {}, {});
  workers_.ReportNotStarted(EIO, "no socket");
  EXPECT_THAT(sent_, ElementsAre("not started 4: no socket", "not started 5: no socket"));
}

}  // namespace
}  // namespace hvd
