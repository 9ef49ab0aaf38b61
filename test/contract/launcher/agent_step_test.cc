// One step of a scheduler for the agents of several hosts. A shell script plays srun: the commands
// that it reads go to all agents, and their output comes out of it.
#include "launcher/channels/step/agent_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "launcher/channels/bundle/remote_script.h"
#include "launcher/channels/srun_command.h"
#include "launcher/process/jobs/job_id.h"
#include "launcher/wire/messages.h"
#include "runtime/net/stream.h"
#include "test/support/deadline.h"

namespace hvd {
namespace {

using ::testing::HasSubstr;

// The driver's end of one host.
struct HostSeen final : ChannelObserver {
  void OnStage(ChannelStage stage) override { stages.push_back(stage); }
  void OnBytes(std::string_view bytes) override { got += bytes; }
  void OnWritable() override {}
  void OnEnd(const ChannelEnd& the_end) override {
    ++ends;
    end = the_end;
  }
  bool running() const { return !stages.empty() && stages.back() == ChannelStage::kRunning; }

  std::vector<ChannelStage> stages;
  std::string got;
  ChannelEnd end;
  int ends = 0;
};

class AgentStepTest : public ::testing::Test {
 protected:
  void SetUp() override { ::signal(SIGPIPE, SIG_IGN); }

  // The script that the task on each host runs; the line of the invitation is its $line.
  void Open(const std::vector<std::string>& tasks) {
    AgentStepOptions options;
    options.job_id = job_id;
    options.patience = patience;
    options.listen = [this] {
      Result<MeshListener> listener = OpenMeshListener({{"127.0.0.1"}, 0, 0}, 0);
      door = listener->record.endpoints.front();
      return listener;
    };
    options.program = {[this, tasks](const std::vector<StepHost>& hosts) {
                         ++programs;
                         std::string script = "read -r line; ";
                         for (const StepHost& host : hosts) script += tasks[host.number] + " & ";
                         script += "cat >/dev/null; echo over >&2; kill 0";
                         return std::vector<std::string>{"/bin/sh", "-c", script};
                       },
                       ParseSrunOutput, ReadSrunStepEnd};
    const auto step =
        std::make_shared<AgentStep>(io, clock, options, std::make_shared<LocalFamily>());
    seen = std::vector<HostSeen>(tasks.size());
    for (uint32_t host = 0; host < tasks.size(); ++host) {
      channels.push_back(step->Join({host, "n" + std::to_string(host + 1)}));
      channels.back()->Open(seen[host]);
    }
  }
  std::string Id(uint32_t host) const { return AgentJobId(job_id, host); }
  // The agent of a host, whose stdin stays open.
  std::string Agent(uint32_t host) const {
    return "{ echo hvdrun-agent " + Id(host) + "; { echo \"$line\"; sleep 1000; } | " +
           HVDRUN_PATH + " agent --dial " + Id(host) + "; }";
  }
  template <typename Condition>
  bool RunUntil(Condition condition) {
    const TimePoint deadline = SteadyNow() + kDeadline;
    while (!condition() && SteadyNow() < deadline) io.run_one_for(std::chrono::milliseconds(50));
    return condition();
  }

  const std::string job_id = MakeJobId();
  const SteadyClock clock;
  Duration patience = std::chrono::seconds(30);
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> stay{io.get_executor()};
  std::vector<HostSeen> seen;
  std::vector<std::unique_ptr<HostChannel>> channels;
  std::string door;
  int programs = 0;
};

TEST_F(AgentStepTest, OneProgramStartsTheAgentsOfAllHostsAndEachHasAChannel) {
  Open({Agent(0), Agent(1)});
  ASSERT_TRUE(RunUntil([&] { return seen[0].running() && seen[1].running(); }));
  EXPECT_EQ(programs, 1);
  EXPECT_TRUE(seen[0].got.starts_with(AgentGreeting(Id(0)))) << seen[0].got;
  EXPECT_TRUE(seen[1].got.starts_with(AgentGreeting(Id(1)))) << seen[1].got;
  channels[0]->Close();
  ASSERT_TRUE(RunUntil([&] { return seen[0].ends == 1; }));
  EXPECT_EQ(seen[0].end.stage, ChannelStage::kClosed);
  io.run_for(std::chrono::milliseconds(20));
  EXPECT_EQ(seen[1].ends, 0) << "the others live on";
  channels[1]->Close();
  ASSERT_TRUE(RunUntil([&] { return seen[1].ends == 1; }));
}

TEST_F(AgentStepTest, BytesOfEachHostAreItsOwn) {
  Open({Agent(0), Agent(1)});
  ASSERT_TRUE(RunUntil([&] { return seen[0].running() && seen[1].running(); }));
  for (uint32_t host : {0u, 1u}) {
    StreamOptions options;
    options.job = *ParseJobId(Id(host));
    Stream stream(options);
    stream.Attach(SteadyNow());
    const std::string hello(stream.Outgoing());
    EXPECT_EQ(channels[host]->Write(hello), hello.size());
    bool ready = false;
    size_t read = AgentGreeting(Id(host)).size();
    ASSERT_TRUE(RunUntil([&] {
      EXPECT_TRUE(stream.Receive(seen[host].got.substr(read), SteadyNow()).ok());
      read = seen[host].got.size();
      while (std::optional<StreamMessage> message = stream.Next()) ready = true;
      return ready;
    }));
  }
  for (auto& channel : channels) channel->Kill();
  ASSERT_TRUE(RunUntil([&] { return seen[0].ends + seen[1].ends == 2; }));
}

TEST_F(AgentStepTest, AHostWhoseAgentDoesNotConnectMayBeReachedInAnotherWay) {
  patience = std::chrono::milliseconds(50);
  Open({Agent(0), "echo hvdrun-agent " + Id(1)});
  ASSERT_TRUE(RunUntil([&] { return seen[1].ends == 1; }));
  EXPECT_TRUE(seen[1].end.may_pass);
  EXPECT_THAT(seen[1].end.reason, HasSubstr("did not connect"));
  EXPECT_EQ(seen[1].got, "");
  for (auto& channel : channels) channel->Kill();
  ASSERT_TRUE(RunUntil([&] { return seen[0].ends == 1; }));
}

TEST_F(AgentStepTest, AHostThatNeedsAStdinOfItsOwnMayBeReachedInAnotherWay) {
  Open({Agent(0), "echo hvdrun-agent " + Id(1) + " wants gzip",
        "echo hvdrun-agent " + Id(2) + " unconnected nobody answers"});
  ASSERT_TRUE(RunUntil([&] { return seen[1].ends == 1 && seen[2].ends == 1; }));
  EXPECT_TRUE(seen[1].end.may_pass);
  EXPECT_TRUE(seen[2].end.may_pass);
  EXPECT_THAT(seen[2].end.reason, HasSubstr("nobody answers"));
  ASSERT_TRUE(RunUntil([&] { return seen[0].running(); })) << "the others go on";
  channels[0]->Close();
  ASSERT_TRUE(RunUntil([&] { return seen[0].ends == 1; }));
}

TEST_F(AgentStepTest, WithoutAPlaceToListenEachHostGoesItsOwnWay) {
  AgentStepOptions options;
  options.job_id = job_id;
  options.listen = [] { return Result<MeshListener>(InvalidArgument("all ports are in use")); };
  const auto step =
      std::make_shared<AgentStep>(io, clock, options, std::make_shared<LocalFamily>());
  HostSeen one;
  const std::unique_ptr<HostChannel> channel = step->Join({0, "n1"});
  channel->Open(one);
  EXPECT_EQ(one.ends, 0) << "not from inside Open";
  ASSERT_TRUE(RunUntil([&] { return one.ends == 1; }));
  EXPECT_TRUE(one.end.may_pass);
  EXPECT_THAT(one.end.reason, HasSubstr("all ports are in use"));
}

TEST_F(AgentStepTest, TheEndOfTheProgramIsTheEndOfAllAndItsWordsSayWhy) {
  Open({Agent(0), Agent(1),
        "{ sleep 1; echo '*** STEP 1.0 ON n1 CANCELLED AT 2026 ***' >&2; kill -TERM 0; }"});
  ASSERT_TRUE(RunUntil([&] { return seen[0].ends + seen[1].ends + seen[2].ends == 3; }));
  for (uint32_t host : {0u, 1u}) {
    EXPECT_EQ(seen[host].end.stage, ChannelStage::kRunning);
    EXPECT_EQ(seen[host].end.reason, "Slurm ended the step: it was cancelled");
    EXPECT_FALSE(seen[host].end.may_pass);
  }
}

TEST_F(AgentStepTest, AnAgentThatEndsIsExplainedByTheWordsAboutItsHost) {
  const std::string agent = "{ echo \"$line\"; sleep 0.3; } | " + std::string(HVDRUN_PATH) +
                            " agent --dial " + Id(1) +
                            "; echo srun: error: n2: task 1: Exited with exit code 137 >&2";
  Open({Agent(0), "{ " + agent + "; }"});  // its step's stdin ends, and so does the agent
  ASSERT_TRUE(RunUntil([&] { return seen[1].ends == 1; }));
  EXPECT_EQ(seen[1].end.stage, ChannelStage::kRunning);
  EXPECT_EQ(seen[1].end.reason, "the agent was ended by signal 9");
  EXPECT_EQ(seen[0].ends, 0);
  channels[0]->Kill();
  ASSERT_TRUE(RunUntil([&] { return seen[0].ends == 1; }));
}

TEST_F(AgentStepTest, AStrangerIsToldNothing) {
  Open({Agent(0)});
  ASSERT_TRUE(RunUntil([&] { return !door.empty(); }));
  const Result<MeshAddress> address = ParseMeshEndpoint(door);
  ASSERT_TRUE(address.ok());
  UniqueFd stranger(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(stranger.get(), address->get(), address->length), 0);
  const std::string junk(4096, 'x');
  ASSERT_GT(::send(stranger.get(), junk.data(), junk.size(), MSG_NOSIGNAL), 0);
  char byte = 0;
  ssize_t got = 0;
  EXPECT_TRUE(RunUntil([&] {
    got = ::recv(stranger.get(), &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }));
  EXPECT_LE(got, 0);
  ASSERT_TRUE(RunUntil([&] { return seen[0].running(); })) << "the agent is not kept out by it";
  channels[0]->Kill();
  ASSERT_TRUE(RunUntil([&] { return seen[0].ends == 1; }));
}

}  // namespace
}  // namespace hvd
