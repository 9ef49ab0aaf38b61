// The promises of every ProcessHost, checked on the real one and on the scripted one.
#include "launcher/process/process_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <fstream>
#include <map>
#include <memory>

#include "launcher/process/local_process_host.h"
#include "launcher/process/process_tree.h"
#include "test/contract/launcher/scripted_process_host.h"
#include "test/support/deadline.h"

namespace hvd {
namespace {

using ::testing::HasSubstr;

struct Recorder final : ProcessObserver {
  void OnOutput(uint32_t worker, OutputStream stream, std::string_view bytes) override {
    std::map<uint32_t, std::string>* const texts[kOutputStreams] = {&out, &err, &result};
    (*texts[static_cast<int>(stream)])[worker] += bytes;
    EXPECT_FALSE(ended[worker][static_cast<int>(stream)]) << "output after its end";
  }
  void OnOutputEnd(uint32_t worker, OutputStream stream) override {
    EXPECT_FALSE(ended[worker][static_cast<int>(stream)]) << "a second end";
    ended[worker][static_cast<int>(stream)] = true;
  }
  void OnExit(uint32_t worker, ProcessEnd end, TimePoint) override {
    exits[worker].push_back(end);
    out_at_exit[worker] = out[worker];
  }
  bool Exited(uint32_t worker) { return !exits[worker].empty(); }

  std::map<uint32_t, std::string> out, err, result, out_at_exit;
  std::map<uint32_t, std::map<int, bool>> ended;
  std::map<uint32_t, std::vector<ProcessEnd>> exits;
};

enum class HostKind { kLocal, kScripted };

class ProcessHostContract : public ::testing::TestWithParam<HostKind> {
 protected:
  void SetUp() override {
    if (GetParam() == HostKind::kLocal) {
      BecomeSubreaper();
      host = std::make_unique<LocalProcessHost>(io, seen);
      return;
    }
    auto scripted = std::make_unique<ScriptedProcessHost>(
        io, seen,
        std::map<std::string, ScriptedProcessHost::Script>{
            {"talk", {"out:one\n", "err:two\n", "out:three\n", "exit:5"}},
            {"true", {"exit:0"}},
            {"crash", {"signal:11"}},
            {"hang", {"out:up\n", "hang"}},
            {"leave-daemon", {"out:up\n", "daemon", "exit:0"}},
        });
    late = [host = scripted.get()] { host->WriteLate(1); };
    host = std::move(scripted);
  }
  void TearDown() override {
    for (uint32_t worker = 1; worker < 4; ++worker) host->Kill(worker);
    RunUntil([&] { return host->OutputEnded(); });
    KillEverything("none", {}, std::chrono::seconds(10));
  }

  SpawnOutcome Spawn(uint32_t worker, const std::string& what) {
    static const std::map<std::string, std::string> shell_commands = {
        {"talk", "echo one; echo two >&2; echo three; exit 5"},
        {"true", "exit 0"},
        {"crash", "kill -SEGV $$"},
        {"hang", "trap '' TERM; sleep 600 & echo up; wait; wait"},
        {"leave-daemon",
         "trap 'echo late; exit' USR1; (while :; do sleep 0.01; done) & echo up; exit 0"},
    };
    SpawnRequest request;
    request.directory = "/";
    request.environment = {"PATH=/usr/bin:/bin", "ONLY=this"};
    request.argv = {what};
    if (GetParam() == HostKind::kLocal && shell_commands.contains(what))
      request.argv = {"sh", "-c", shell_commands.at(what)};
    return host->Spawn(worker, request);
  }
  template <typename Condition>
  bool RunUntil(Condition condition) {
    TimePoint deadline = SteadyNow() + kDeadline;
    while (!condition() && SteadyNow() < deadline) io.run_one_for(std::chrono::milliseconds(50));
    return condition();
  }

  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> stay{io.get_executor()};
  Recorder seen;
  std::unique_ptr<ProcessHost> host;
  std::function<void()> late;
};

TEST_P(ProcessHostContract, ExitIsReportedOnceAfterAllOutput) {
  SpawnOutcome outcome = Spawn(1, "talk");
  ASSERT_GT(outcome.pid, 0) << outcome.reason;
  ASSERT_TRUE(RunUntil([&] { return seen.Exited(1); }));
  EXPECT_EQ(seen.exits[1], std::vector<ProcessEnd>({{false, 5}}));
  EXPECT_EQ(seen.out_at_exit[1], "one\nthree\n");
  EXPECT_EQ(seen.err[1], "two\n");
  io.run_for(std::chrono::milliseconds(20));
  EXPECT_EQ(seen.exits[1].size(), 1u);
  EXPECT_TRUE(host->OutputEnded());
}

TEST_P(ProcessHostContract, ASignalIsNamedAsSuch) {
  Spawn(1, "crash");
  ASSERT_TRUE(RunUntil([&] { return seen.Exited(1); }));
  EXPECT_EQ(seen.exits[1][0], (ProcessEnd{true, SIGSEGV}));
  EXPECT_EQ(seen.exits[1][0].exit_code(), 139);
}

TEST_P(ProcessHostContract, ACommandThatDoesNotExistIsToldAtOnce) {
  SpawnOutcome outcome = Spawn(1, "no-such-command");
  EXPECT_EQ(outcome.pid, 0);
  EXPECT_EQ(outcome.error, ENOENT);
  EXPECT_THAT(outcome.reason, HasSubstr("'no-such-command'"));
  io.run_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(seen.exits[1].empty());
}

TEST_P(ProcessHostContract, AGrandchildThatHoldsThePipeDoesNotHoldTheExitBack) {
  Spawn(1, "leave-daemon");
  ASSERT_TRUE(RunUntil([&] { return seen.Exited(1); }));
  EXPECT_EQ(seen.exits[1][0], (ProcessEnd{false, 0}));
  EXPECT_FALSE(host->OutputEnded());
  EXPECT_EQ(seen.out[1], "up\n");
  host->Kill(1);
  EXPECT_TRUE(RunUntil([&] { return host->OutputEnded(); }))
      << "kill takes what the worker left, too";
  EXPECT_EQ(seen.exits[1].size(), 1u);
}

TEST_P(ProcessHostContract, KillEndsTheWholeTree) {
  Spawn(1, "hang");
  ASSERT_TRUE(RunUntil([&] { return seen.out[1] == "up\n"; }));
  host->Kill(1);
  ASSERT_TRUE(RunUntil([&] { return seen.Exited(1) && host->OutputEnded(); }));
  EXPECT_EQ(seen.exits[1][0], (ProcessEnd{true, SIGKILL}));
}

TEST_P(ProcessHostContract, HeldOutputIsNotLost) {
  host->HoldOutput(true);
  Spawn(1, "talk");
  io.run_for(std::chrono::milliseconds(20));
  EXPECT_EQ(seen.out[1], "");
  host->HoldOutput(false);
  EXPECT_TRUE(RunUntil([&] { return seen.out[1] == "one\nthree\n"; }));
}

TEST_P(ProcessHostContract, SignallingTheDeadDoesNothing) {
  Spawn(1, "true");
  ASSERT_TRUE(RunUntil([&] { return seen.Exited(1); }));
  host->Signal(1, SIGTERM);
  host->Kill(1);
  io.run_for(std::chrono::milliseconds(20));
  EXPECT_EQ(seen.exits[1].size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(All, ProcessHostContract,
                         ::testing::Values(HostKind::kLocal, HostKind::kScripted),
                         [](const auto& p) {
                           return p.param == HostKind::kLocal ? "local" : "scripted";
                         });

// ---- what only a real one can show

class LocalProcessHostTest : public ProcessHostContract {};
INSTANTIATE_TEST_SUITE_P(Real, LocalProcessHostTest, ::testing::Values(HostKind::kLocal));

TEST_P(LocalProcessHostTest, TheWorkerGetsExactlyItsEnvironmentAndNoStdin) {
  SpawnRequest request{{"sh", "-c", "env | grep -v -e ^PWD= -e ^SHLVL= -e ^_= | sort; cat"},
                       {"PATH=/bin:/usr/bin", "A=1"},
                       "/"};
  host->Spawn(1, request);
  ASSERT_TRUE(RunUntil([&] { return seen.Exited(1); }));
  EXPECT_EQ(seen.out[1], "A=1\nPATH=/bin:/usr/bin\n");
}

TEST_P(LocalProcessHostTest, TheWorkerHasItsOwnSessionAndDefaultSignals) {
  ::signal(SIGUSR1, SIG_IGN);
  SpawnRequest request{
      {"sh", "-c", "cut -d' ' -f1,5,6 /proc/$$/stat; grep -E 'Sig(Blk|Ign)' /proc/self/status"},
      {"PATH=/bin:/usr/bin"},
      "/"};
  SpawnOutcome outcome = host->Spawn(1, request);
  ::signal(SIGUSR1, SIG_DFL);
  ASSERT_TRUE(RunUntil([&] { return seen.Exited(1); }));
  std::string pid = std::to_string(outcome.pid);
  EXPECT_EQ(seen.out[1], pid + " " + pid + " " + pid +
                             "\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST_P(LocalProcessHostTest, LateOutputOfAGrandchildStillArrives) {
  SpawnRequest request{
      {"sh", "-c", "(sleep 0.5; echo late) & echo up"}, {"PATH=/bin:/usr/bin"}, "/"};
  host->Spawn(1, request);
  ASSERT_TRUE(RunUntil([&] { return seen.Exited(1); }));
  EXPECT_EQ(seen.out_at_exit[1], "up\n");
  EXPECT_TRUE(RunUntil([&] { return seen.out[1] == "up\nlate\n"; }));
}

TEST_P(LocalProcessHostTest, AMissingWorkingDirectoryIsNamed) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer makes a fork of vfork, whose child cannot tell what failed";
#endif
  SpawnRequest request{{"true"}, {"PATH=/bin:/usr/bin"}, "/no/such/folder"};
  SpawnOutcome outcome = host->Spawn(1, request);
  EXPECT_EQ(outcome.pid, 0);
  EXPECT_THAT(outcome.reason, HasSubstr("/no/such/folder"));
}

// Descriptors may have the numbers in the agent that others are to have in the worker.
TEST_P(LocalProcessHostTest, AWorkerReadsItsFunctionAndWritesItsResult) {
  int function[2], kept[2];
  ASSERT_EQ(::pipe(function), 0);
  ASSERT_EQ(::pipe(kept), 0);
  ASSERT_EQ(::write(function[1], "f", 1), 1);
  ASSERT_EQ(::write(kept[1], "k", 1), 1);
  for (int fd : {function[1], kept[1]}) ::close(fd);
  SpawnRequest request{{"sh", "-c", "cat <&3; echo; (cat <&4; echo) >&5; exec ls /proc/self/fd"},
                       {"PATH=/bin:/usr/bin"},
                       "/"};
  request.kept_fd = kept[0];
  request.function_fd = function[0];
  const SpawnOutcome outcome = host->Spawn(1, request);
  for (int fd : {function[0], kept[0]}) ::close(fd);
  ASSERT_GT(outcome.pid, 0) << outcome.reason;
  ASSERT_TRUE(RunUntil([&] { return seen.Exited(1); }));
  EXPECT_EQ(seen.result[1], "f\n");
  EXPECT_EQ(seen.out[1], "k\n0\n1\n2\n3\n4\n5\n6\n");  // 6 is the folder that ls reads
  EXPECT_TRUE(host->OutputEnded());
}

TEST_P(LocalProcessHostTest, AWorkerWithoutAFunctionHasNoMoreDescriptors) {
  SpawnRequest request{{"ls", "/proc/self/fd"}, {"PATH=/bin:/usr/bin"}, "/"};
  host->Spawn(1, request);
  ASSERT_TRUE(RunUntil([&] { return seen.Exited(1); }));
  EXPECT_EQ(seen.out[1], "0\n1\n2\n3\n");  // 3 is the folder that ls reads
}

}  // namespace
}  // namespace hvd
