// The promises of every HostChannel, checked on the real ones and on the scripted one.
#include "launcher/channels/host_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "launcher/channels/command_channel.h"
#include "launcher/channels/local_channel.h"
#include "launcher/channels/srun_command.h"
#include "launcher/channels/ssh/ssh_channel.h"
#include "launcher/channels/ssh_command.h"
#include "launcher/channels/step/agent_step.h"
#include "launcher/process/jobs/job_id.h"
#include "launcher/wire/messages.h"
#include "runtime/net/stream.h"
#include "test/contract/launcher/scripted_channel.h"
#include "test/contract/launcher/sshd_rig.h"
#include "test/support/deadline.h"

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Plays the driver: says hello, keeps what comes.
struct Driver final : ChannelObserver {
  explicit Driver(uint64_t job) : stream(OptionsOf(job)) {}

  static StreamOptions OptionsOf(uint64_t job) {
    StreamOptions options;
    options.job = job;
    return options;
  }
  void OnStage(ChannelStage stage) override {
    EXPECT_EQ(ends, 0) << "nothing after the end";
    stages.push_back(stage);
  }
  void OnBytes(std::string_view bytes) override {
    EXPECT_EQ(ends, 0) << "nothing after the end";
    ASSERT_FALSE(stages.empty()) << "bytes before the stage kRunning";
    EXPECT_EQ(stages.back(), ChannelStage::kRunning);
    EXPECT_TRUE(stream.Receive(bytes, SteadyNow()).ok());
    while (std::optional<StreamMessage> message = stream.Next()) {
      Result<ToDriver> decoded = DecodeToDriver(message->bytes);
      ASSERT_TRUE(decoded.ok());
      if (std::holds_alternative<AgentReady>(*decoded)) ready = true;
    }
  }
  void OnWritable() override {
    ++writable;
    if (on_writable) on_writable();
  }
  void OnEnd(const ChannelEnd& the_end) override {
    ++ends;
    end = the_end;
  }

  Stream stream;
  std::vector<ChannelStage> stages;
  bool ready = false;
  int ends = 0, writable = 0;
  std::function<void()> on_writable;
  ChannelEnd end;
};

// Plays an agent that says hello and that it is ready.
ScriptedChannel::FarEnd ScriptedAgent(uint64_t job) {
  auto stream = std::make_shared<Stream>(Driver::OptionsOf(job));
  return [stream, begun = false](std::string_view bytes) mutable {
    if (!begun) {
      begun = true;
      stream->Attach(SteadyNow());
      stream->SendControl(EncodeToDriver(AgentReady{1, 2, "script"}));
    }
    EXPECT_TRUE(stream->Receive(bytes, SteadyNow()).ok());
    std::string out(stream->Outgoing());
    stream->Consume(out.size());
    return out;
  };
}

struct Rig {
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> stay{io.get_executor()};
  std::string job_id = MakeJobId();
  Driver driver{*ParseJobId(job_id)};
  std::unique_ptr<HostChannel> channel;

  void Open() {
    driver.stream.Attach(SteadyNow());
    driver.on_writable = [this] { Flush(); };  // a channel may take nothing until it runs
    channel->Open(driver);
    Flush();
  }
  void Flush() {
    std::string_view out = driver.stream.Outgoing();
    driver.stream.Consume(channel->Write(out));
  }
  template <typename Condition>
  bool RunUntil(Condition condition) {
    TimePoint deadline = SteadyNow() + kDeadline;
    while (!condition() && SteadyNow() < deadline) io.run_one_for(std::chrono::milliseconds(50));
    return condition();
  }
};

// As srun does it: its output is not the stream, and its agent connects to hvdrun.
std::unique_ptr<HostChannel> StepChannel(asio::io_context& io, const std::string& job_id,
                                         const std::string& command) {
  static const SteadyClock clock;
  AgentStepOptions options;
  options.job_id = job_id;
  options.greets = false;
  options.listen = [] { return OpenMeshListener({{"127.0.0.1"}, 0, 0}, 0); };
  options.program = {[command](const std::vector<StepHost>&) {
                       return std::vector<std::string>{"/bin/sh", "-c", command};
                     },
                     ParseSrunOutput, ReadSrunStepEnd};
  const auto step =
      std::make_shared<AgentStep>(io, clock, options, std::make_shared<LocalFamily>());
  return step->Join({0, "n1"});
}

enum class Kind { kLocal, kCommand, kScripted, kSsh, kStep };

class HostChannelContract : public ::testing::TestWithParam<Kind> {
 protected:
  // As in hvdrun itself: a write to an agent that is gone is an error, not the end of this process.
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    if (GetParam() == Kind::kSsh && !SshdRig::Available())
      GTEST_SKIP() << "there is no sshd: apt-get install openssh-server";
  }
  void MakeSsh(Rig& rig, const std::string& command) {
    sshd = std::make_unique<SshdRig>();
    rig.channel = std::make_unique<SshChannel>(std::make_shared<SshHub>(rig.io),
                                               SshRequest{sshd->Config(), "", command});
  }
  // As with srun, blaunch, the ssh program or --rsh-agent.
  static void MakeCommand(Rig& rig, const std::string& command) {
    rig.channel = std::make_unique<CommandChannel>(
        rig.io, std::vector<std::string>{"/bin/sh", "-c", command},
        [](const CommandEnd& end) { return ReadRshAgentEnd("sh -c", end); },
        std::make_shared<LocalFamily>());
  }
  void Make(Rig& rig) {
    const std::string agent = std::string("exec ") + HVDRUN_PATH + " agent --job " + rig.job_id;
    if (GetParam() == Kind::kSsh) {
      MakeSsh(rig, agent);
    } else if (GetParam() == Kind::kStep) {
      rig.channel = StepChannel(rig.io, rig.job_id,
                                std::string("exec ") + HVDRUN_PATH + " agent --dial " + rig.job_id);
    } else if (GetParam() == Kind::kCommand) {
      MakeCommand(rig, agent);
    } else if (GetParam() == Kind::kLocal) {
      std::vector<std::string> command = {HVDRUN_PATH, "agent", "--job", rig.job_id};
      rig.channel = std::make_unique<LocalChannel>(rig.io, rig.job_id, command);
    } else {
      rig.channel =
          std::make_unique<ScriptedChannel>(rig.io, ScriptedAgent(*ParseJobId(rig.job_id)));
    }
  }
  void MakeUnstartable(Rig& rig) {
    if (GetParam() == Kind::kSsh) {
      MakeSsh(rig, "exec /no/such/agent");
    } else if (GetParam() == Kind::kStep) {
      rig.channel = StepChannel(rig.io, rig.job_id, "exec /no/such/agent");
    } else if (GetParam() == Kind::kCommand) {
      MakeCommand(rig, "exec /no/such/agent");
    } else if (GetParam() == Kind::kLocal) {
      rig.channel = std::make_unique<LocalChannel>(rig.io, rig.job_id,
                                                   std::vector<std::string>{"/no/such/agent"});
    } else {
      auto scripted = std::make_unique<ScriptedChannel>(rig.io, ScriptedAgent(1));
      scripted->FailToStart("the command '/no/such/agent' does not exist");
      rig.channel = std::move(scripted);
    }
  }
  std::unique_ptr<SshdRig> sshd;
};

TEST_P(HostChannelContract, CarriesBytesBothWays) {
  Rig rig;
  Make(rig);
  rig.Open();
  EXPECT_TRUE(rig.RunUntil([&] { return rig.driver.ready; }));
  rig.channel->Close();
  EXPECT_TRUE(rig.RunUntil([&] { return rig.driver.ends > 0; }));
}

TEST_P(HostChannelContract, EntersItsStagesInOrderUntilItRuns) {
  Rig rig;
  Make(rig);
  rig.Open();
  ASSERT_TRUE(rig.RunUntil([&] { return rig.driver.ready; }));
  EXPECT_TRUE(std::is_sorted(rig.driver.stages.begin(), rig.driver.stages.end()));
  std::vector<ChannelStage> last(rig.driver.stages.end() - 2, rig.driver.stages.end());
  // A program that leads to the host does not tell how far it is.
  const ChannelStage before = GetParam() == Kind::kCommand || GetParam() == Kind::kStep
                                  ? ChannelStage::kConnect
                                  : ChannelStage::kExec;
  EXPECT_THAT(last, ElementsAre(before, ChannelStage::kRunning));
  rig.channel->Close();
  EXPECT_TRUE(rig.RunUntil([&] { return rig.driver.ends > 0; }));
  EXPECT_EQ(rig.driver.stages.back(), ChannelStage::kRunning) << "who closes need not be told";
}

TEST_P(HostChannelContract, AFailedStartIsAnEndInTheStageExec) {
  Rig rig;
  MakeUnstartable(rig);
  rig.Open();
  EXPECT_EQ(rig.driver.ends, 0) << "not from inside Open";
  EXPECT_TRUE(rig.RunUntil([&] { return rig.driver.ends > 0; }));
  EXPECT_EQ(rig.driver.end.stage, ChannelStage::kExec);
  EXPECT_THAT(rig.driver.end.reason, HasSubstr("/no/such/agent"));
}

TEST_P(HostChannelContract, TheEndAfterCloseIsReportedOnceInTheStageClosed) {
  Rig rig;
  Make(rig);
  rig.Open();
  ASSERT_TRUE(rig.RunUntil([&] { return rig.driver.ready; }));
  rig.channel->Close();
  rig.channel->Close();
  ASSERT_TRUE(rig.RunUntil([&] { return rig.driver.ends > 0; }));
  rig.io.run_for(std::chrono::milliseconds(20));
  EXPECT_EQ(rig.driver.ends, 1);
  EXPECT_EQ(rig.driver.end.stage, ChannelStage::kClosed);
}

TEST_P(HostChannelContract, AKilledAgentIsAnEndWithAReason) {
  Rig rig;
  Make(rig);
  rig.Open();
  ASSERT_TRUE(rig.RunUntil([&] { return rig.driver.ready; }));
  rig.channel->Kill();
  ASSERT_TRUE(rig.RunUntil([&] { return rig.driver.ends > 0; }));
  rig.io.run_for(std::chrono::milliseconds(20));
  EXPECT_EQ(rig.driver.ends, 1);
  EXPECT_FALSE(rig.driver.end.reason.empty());
}

TEST_P(HostChannelContract, WritingAfterTheEndIsSwallowed) {
  Rig rig;
  Make(rig);
  rig.Open();
  rig.channel->Kill();
  ASSERT_TRUE(rig.RunUntil([&] { return rig.driver.ends > 0; }));
  EXPECT_EQ(rig.channel->Write("abc"), 3u);
}

std::string NameOf(const ::testing::TestParamInfo<Kind>& info) {
  constexpr const char* kNames[] = {"local", "command", "scripted", "ssh", "step"};
  return kNames[static_cast<size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(All, HostChannelContract,
                         ::testing::Values(Kind::kLocal, Kind::kCommand, Kind::kScripted,
                                           Kind::kSsh, Kind::kStep),
                         NameOf);

TEST(ScriptedChannel, TellsWhenThereIsRoomAgain) {
  asio::io_context io;
  Driver driver(1);
  std::string got;
  ScriptedChannel channel(
      io, [&](std::string_view bytes) { return got += bytes, std::string(); }, 2);
  channel.Open(driver);
  EXPECT_EQ(channel.Write("abc"), 2u);
  io.run();
  EXPECT_EQ(driver.writable, 1);
  EXPECT_EQ(got, "ab");
}

// The ends of a program, its stream and its errors are all known when the io_context looks first,
// with a SIGCHLD of somebody else before or after them.
class EndedChannel : public ::testing::TestWithParam<bool> {
 protected:
  void RunDry(HostChannel& channel) {
    Driver driver{1};
    channel.Open(driver);
    if (GetParam()) ::raise(SIGCHLD);
    siginfo_t ended{};
    ASSERT_EQ(::waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT), 0);
    io.run_for(std::chrono::seconds(20));
    EXPECT_EQ(driver.ends, 1);
    EXPECT_TRUE(io.stopped()) << "something is still waited for";
  }
  asio::io_context io{1};
};

TEST_P(EndedChannel, OfACommandLeavesTheIoContextNothingToDo) {
  CommandChannel channel(
      io, {"/bin/true"}, [](const CommandEnd&) { return ChannelEnd(); },
      std::make_shared<LocalFamily>());
  RunDry(channel);
}

TEST_P(EndedChannel, OfALocalAgentLeavesTheIoContextNothingToDo) {
  LocalChannel channel(io, MakeJobId(), {"/bin/true"});
  RunDry(channel);
}

INSTANTIATE_TEST_SUITE_P(OtherSignalFirst, EndedChannel, ::testing::Bool());

}  // namespace
}  // namespace hvd
