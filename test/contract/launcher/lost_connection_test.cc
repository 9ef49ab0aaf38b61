// AgentConnection over scripted channels that are lost in the middle: the bytes that both sides
// sent arrive once and in order, and a host is lost when, and only when, it cannot come back. And
// the agent's listener for drivers that come back, with real sockets.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "launcher/agent/resume_listener.h"
#include "launcher/driver/agents/agent_connection.h"
#include "launcher/process/jobs/job_id.h"
#include "runtime/net/link.h"
#include "test/contract/launcher/scripted_channel.h"
#include "test/support/deadline.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kJob = 7;
constexpr uint32_t kHost = 3;
const char* const kGreeting = "hello from job 7\n";
const char* const kNoAgent = "no agent of job 7";

// The agent's end of the stream, whatever connection it has.
struct SimulatedAgent {
  SimulatedAgent() : stream(Options()) {}
  static StreamOptions Options() {
    StreamOptions options;
    options.job = kJob;
    return options;
  }
  void Receive(std::string_view bytes) {
    EXPECT_TRUE(stream.Receive(bytes, SteadyNow()).ok());
    while (std::optional<StreamMessage> message = stream.Next()) {
      Result<ToAgent> decoded = DecodeToAgent(message->bytes);
      ASSERT_TRUE(decoded.ok());
      if (auto* await = std::get_if<AwaitDriver>(&*decoded)) {
        key = await->key;
        EXPECT_GT(await->grace_ms, 0);
      }
      if (std::holds_alternative<StartJob>(*decoded)) ++starts;
      if (auto* input = std::get_if<WorkerInput>(&*decoded)) heard.push_back(input->bytes);
      if (std::holds_alternative<FinishJob>(*decoded))
        stream.SendControl(EncodeToDriver(AgentGone{}));
    }
  }
  std::string Send() {
    std::string out(stream.Outgoing());
    stream.Consume(out.size());
    return out;
  }
  Stream stream;
  void Greet() {
    stream.Attach(SteadyNow());
    stream.SendControl(EncodeToDriver(AgentReady{}));
    stream.SendControl(EncodeToDriver(AgentPath{"/there/hvdrun", "its address"}));
  }
  std::string key;
  int starts = 0;
  std::vector<std::string> heard;
};

struct Heard final : AgentConnectionObserver {
  void OnHostStage(uint32_t, HostStage) override {}
  void OnOutput(uint32_t host, const WorkerOutputView& output, size_t bytes) override {
    EXPECT_EQ(host, kHost);
    lines.emplace_back(output.bytes);
    credit += bytes;
  }
  void OnMessage(uint32_t, ToDriver) override {}
  void OnReadOver(uint32_t) override {}
  void OnHostTrouble(uint32_t, const HostTrouble&) override {}
  void OnHostNote(uint32_t, const std::string&) override {}
  void OnHvdrunSkipped(uint32_t, const std::string&) override {}
  void OnHostAway(uint32_t, const std::string& reason) override { away.push_back(reason); }
  void OnHostBack(uint32_t, Duration) override { ++back; }
  void OnHostEnd(uint32_t, const std::string& reason) override { ends.push_back(reason); }

  std::vector<std::string> lines, away, ends;
  size_t credit = 0;
  int back = 0;
};

class LostConnection : public ::testing::Test {
 protected:
  // `visit`: the far end of the n-th visit; null: it fails.
  using MakeFarEnd = std::function<ScriptedChannel::FarEnd(int number)>;

  void Open(Duration grace, MakeFarEnd side_command, bool started = true) {
    HostTransport way;
    auto first = std::make_unique<ScriptedChannel>(io_, FirstFarEnd());
    channel_ = first.get();
    way.channel = std::move(first);
    way.greeting = kGreeting;
    way.no_agent_text = kNoAgent;
    way.side_command = [this, side_command](SideCommand kind, const AgentPath& there) {
      EXPECT_EQ(kind, SideCommand::kResume);
      EXPECT_EQ(there.hvdrun, "/there/hvdrun");
      EXPECT_EQ(there.resume_address, "its address");
      ScriptedChannel::FarEnd far_end = side_command(visits_++);
      auto channel = std::make_unique<ScriptedChannel>(io_, far_end ? far_end : Silent());
      if (!far_end) channel->FailToStart("no route");
      channel_ = channel.get();
      return channel;
    };
    Heartbeat heartbeat;
    heartbeat.limit_seconds = 3600;
    heartbeat.grace = grace;
    line_ = std::make_unique<AgentConnection>(heard_, kHost, kJob, std::move(way), heartbeat);
    line_->Open();
    if (!started) {
      ASSERT_TRUE(RunUntil([this] { return !agent_.key.empty(); }));
      return Step();
    }
    line_->Send(StartJob{});
    ASSERT_TRUE(RunUntil([this] { return agent_.starts == 1; }));
    Step();
  }

  static ScriptedChannel::FarEnd Silent() {
    return [](std::string_view) { return std::string(); };
  }
  ScriptedChannel::FarEnd FirstFarEnd() {
    return [this, begun = false](std::string_view bytes) mutable {
      std::string out;
      if (!std::exchange(begun, true)) {
        agent_.Greet();
        out = kGreeting;
      }
      agent_.Receive(bytes);
      return out + agent_.Send();
    };
  }
  // A visit that finds the agent: the first bytes are the key.
  ScriptedChannel::FarEnd Returning() {
    return [this, said = std::string(), opened = false,
            proven = false](std::string_view bytes) mutable -> std::string {
      if (!std::exchange(opened, true)) return std::string("Welcome!\n") + kGreeting;
      if (!proven) {
        said += bytes;
        if (said.size() < agent_.key.size()) return "";
        EXPECT_EQ(said.substr(0, agent_.key.size()), agent_.key);
        proven = true;
        agent_.stream.Attach(SteadyNow());
        agent_.Receive(std::string_view(said).substr(agent_.key.size()));
      } else {
        agent_.Receive(bytes);
      }
      return agent_.Send();
    };
  }

  void Step() {
    io_.restart();
    io_.poll();
    line_->ReturnCredit(std::exchange(heard_.credit, 0));
    line_->Tick();
  }
  template <typename Condition>
  bool RunUntil(Condition condition) {
    TimePoint deadline = SteadyNow() + kDeadline;
    while (!condition() && SteadyNow() < deadline) Step();
    return condition();
  }

  asio::io_context io_{1};
  SimulatedAgent agent_;
  Heard heard_;
  ScriptedChannel* channel_ = nullptr;  // the last one made
  int visits_ = 0;
  std::unique_ptr<AgentConnection> line_;
};

TEST_F(LostConnection, LosesAndDoublesNothingWhereverItIsCut) {
  Open(seconds(60), [this](int) { return Returning(); });
  std::minstd_rand chance(6);
  std::vector<std::string> lines, inputs;
  int losses = 0;
  for (int round = 0; round < 300; ++round) {
    lines.push_back("line " + std::to_string(round) + std::string(chance() % 9000, 'x'));
    agent_.stream.SendLog(EncodeOutput(0, OutputStream::kStdout, lines.back(), ""));
    inputs.push_back("input " + std::to_string(round));
    line_->Send(WorkerInput{inputs.back()});
    if (chance() % 3 == 0) Step();
    if (chance() % 5 != 0) continue;
    channel_->Die("cut");  // with all that is on its way
    ++losses;
    ASSERT_TRUE(RunUntil([&] { return heard_.back == losses; })) << "round " << round;
  }
  line_->Send(FinishJob{});
  ASSERT_TRUE(RunUntil(
      [&] { return heard_.lines.size() >= lines.size() && agent_.heard.size() >= inputs.size(); }));
  EXPECT_EQ(heard_.lines, lines);
  EXPECT_EQ(agent_.heard, inputs);
  EXPECT_GT(losses, 30);
  EXPECT_EQ(heard_.away, std::vector<std::string>(static_cast<size_t>(losses), "cut"));
  EXPECT_THAT(heard_.ends, IsEmpty());
}

TEST_F(LostConnection, WhatWasSaidMeanwhileArrivesAfterwardsAndTheEndIsWell) {
  Open(seconds(60), [this](int number) { return number < 1 ? nullptr : Returning(); });
  channel_->Die("cut");
  ASSERT_TRUE(RunUntil([this] { return heard_.away.size() == 1; }));
  line_->Send(WorkerInput{"meanwhile"});
  line_->Send(FinishJob{});
  ASSERT_TRUE(RunUntil([this] { return heard_.back == 1 && !agent_.heard.empty(); }));
  EXPECT_THAT(agent_.heard, ElementsAre("meanwhile"));
  ASSERT_TRUE(RunUntil([this] { return agent_.stream.AllAcknowledged(); }));
  channel_->Die("");
  ASSERT_TRUE(RunUntil([this] { return !heard_.ends.empty(); }));
  EXPECT_THAT(heard_.ends, ElementsAre("")) << "the agent had said that it is done";
  EXPECT_EQ(visits_, 2);
}

// While the job waits for slower hosts.
TEST_F(LostConnection, AHostThatIsReadyComesBackBeforeItsJobHasStarted) {
  Open(
      seconds(60), [this](int number) { return number < 1 ? nullptr : Returning(); }, false);
  channel_->Die("cut");
  ASSERT_TRUE(RunUntil([this] { return heard_.away.size() == 1; }));
  line_->Send(StartJob{});
  line_->Send(WorkerInput{"first"});
  ASSERT_TRUE(RunUntil([this] { return heard_.back == 1 && !agent_.heard.empty(); }));
  EXPECT_EQ(agent_.starts, 1);
  EXPECT_THAT(agent_.heard, ElementsAre("first"));
  EXPECT_THAT(heard_.ends, IsEmpty());
}

TEST_F(LostConnection, AHostThatIsGivenUpBeforeItsJobHasStartedIsCleared) {
  Open(
      seconds(3600), [](int) { return nullptr; }, false);
  channel_->Die("cut");
  ASSERT_TRUE(RunUntil([this] { return visits_ == 1; }));
  line_->Cut();
  ASSERT_TRUE(RunUntil([this] { return !heard_.ends.empty(); }));
  EXPECT_TRUE(line_->left_alone()) << "its agent waits for us";
}

TEST_F(LostConnection, WithoutAGraceTheHostIsLostAtOnce) {
  Open(Duration::zero(), [this](int) { return Returning(); });
  EXPECT_EQ(agent_.key, "");
  channel_->Die("cut");
  ASSERT_TRUE(RunUntil([this] { return !heard_.ends.empty(); }));
  EXPECT_THAT(heard_.ends, ElementsAre("cut"));
  EXPECT_EQ(visits_, 0);
  EXPECT_FALSE(line_->left_alone()) << "its agent has seen the end of the stream";
}

TEST_F(LostConnection, AnAgentThatIsGoneIsNotWaitedFor) {
  Open(seconds(3600), [](int) -> ScriptedChannel::FarEnd {
    return [said = false](std::string_view) mutable {
      return std::exchange(said, true) ? "" : std::string(kNoAgent) + "\n";
    };
  });
  channel_->Die("cut");
  ASSERT_TRUE(RunUntil([this] { return visits_ == 1; }));
  Step();
  channel_->Die("ended with exit code 3");
  ASSERT_TRUE(RunUntil([this] { return !heard_.ends.empty(); }));
  EXPECT_THAT(heard_.ends, ElementsAre("cut; its agent is not there any more"));
  EXPECT_TRUE(line_->left_alone()) << "nobody knows how it ended";
}

TEST_F(LostConnection, AnAgentThatWasKilledMayHaveLeftSomething) {
  Open(Duration::zero(), [this](int) { return Returning(); });
  channel_->Die("the agent was ended by signal SIGKILL", /*killed=*/true);
  ASSERT_TRUE(RunUntil([this] { return !heard_.ends.empty(); }));
  EXPECT_TRUE(line_->left_alone());
}

TEST_F(LostConnection, AHostThatDoesNotComeBackIsLostForTheFirstReason) {
  Open(milliseconds(700), [](int) { return nullptr; });
  channel_->Die("cut");
  ASSERT_TRUE(RunUntil([this] { return !heard_.ends.empty(); }));
  EXPECT_THAT(heard_.ends,
              ElementsAre("cut; it could not be reached again within 0.7 s (no route)"));
  EXPECT_EQ(visits_, 2) << "at once, and about 0.5 s later";
  EXPECT_TRUE(line_->left_alone());
}

TEST_F(LostConnection, WhoeverSitsThereInsteadOfTheAgentHearsNoKey) {
  std::string heard;
  Open(milliseconds(300), [&](int) -> ScriptedChannel::FarEnd {
    return [&](std::string_view bytes) {
      heard += bytes;
      return bytes.empty() ? "Welcome!\n" : "";
    };
  });
  channel_->Die("cut");
  ASSERT_TRUE(RunUntil([this] { return !heard_.ends.empty(); }));
  EXPECT_EQ(visits_, 1);
  EXPECT_EQ(heard, "");
}

TEST_F(LostConnection, AHostThatIsCutWhileItIsAwayEnds) {
  Open(seconds(3600), [](int) { return nullptr; });
  channel_->Die("cut");
  ASSERT_TRUE(RunUntil([this] { return visits_ == 1; }));
  EXPECT_TRUE(line_->away());
  line_->Cut();
  ASSERT_TRUE(RunUntil([this] { return !heard_.ends.empty(); }));
  EXPECT_THAT(heard_.ends, ElementsAre("cut"));
  EXPECT_TRUE(line_->left_alone());
}

// A channel that takes its time to end and still has something to say.
struct SlowChannel final : HostChannel {
  void Open(ChannelObserver& the_observer) override { observer = &the_observer; }
  size_t Write(std::string_view bytes) override { return bytes.size(); }
  void Close() override {}
  void Kill() override { killed = true; }
  ChannelObserver* observer = nullptr;
  bool killed = false;
};

TEST(SilentConnection, AFormerChannelIsKilledAndNotHeardAnyMore) {
  SimulatedAgent agent;
  agent.stream.Attach(SteadyNow());
  Heard heard;
  std::vector<SlowChannel*> channels;
  auto make = [&](SideCommand = SideCommand::kResume, const AgentPath& = {}) {
    auto channel = std::make_unique<SlowChannel>();
    channels.push_back(channel.get());
    return channel;
  };
  HostTransport way{make(), kGreeting, nullptr, make, kNoAgent};
  AgentConnection line(heard, kHost, kJob, std::move(way), {milliseconds(1), 1, seconds(3600)});
  line.Open();
  line.Send(StartJob{});
  Stream driver(SimulatedAgent::Options());  // greets the agent in place of the line
  driver.Attach(SteadyNow());
  ASSERT_TRUE(agent.stream.Receive(driver.Outgoing(), SteadyNow()).ok());
  agent.stream.SendControl(EncodeToDriver(AgentPath{"/there/hvdrun", "its address"}));
  channels[0]->observer->OnBytes(kGreeting + agent.Send());
  TimePoint deadline = SteadyNow() + kDeadline;
  while (channels.size() < 2 && SteadyNow() < deadline) line.Tick();
  ASSERT_EQ(channels.size(), 2u) << "silence makes a new one";
  EXPECT_THAT(heard.away, ElementsAre("its agent has been silent for 1 s"));
  EXPECT_TRUE(channels[0]->killed);
  agent.stream.SendLog(EncodeOutput(0, OutputStream::kStdout, "late", ""));
  channels[0]->observer->OnBytes(agent.Send());
  channels[0]->observer->OnEnd({ChannelStage::kRunning, "late"});
  EXPECT_THAT(heard.lines, IsEmpty());
  EXPECT_THAT(heard.ends, IsEmpty());
  line.Cut();
  EXPECT_THAT(heard.ends, IsEmpty()) << "while a channel of it has not ended";
  channels[1]->observer->OnEnd({ChannelStage::kRunning, "cut"});
  EXPECT_EQ(heard.ends.size(), 1u);
}

// ---- the listener for drivers that come back

struct ResumeListenerTest : ::testing::Test {
  void SetUp() override {
    listener.set_driver_key("the key");
    ASSERT_TRUE(listener.Open(name).ok());
  }

  // The driver's end of a connection whose other end a visitor brings.
  int Knock() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    UniqueFd theirs(ends[1]);
    kept.emplace_back(ends[0]);
    Result<UniqueFd> client = ConnectLink(name);
    EXPECT_TRUE(client.ok());
    EXPECT_TRUE(SendStreamEnds(client->get(), theirs.get(), theirs.get()).ok());
    clients.push_back(std::move(*client));
    return ends[0];
  }
  static void Send(int fd, const std::string& words) {
    EXPECT_EQ(::send(fd, words.data(), words.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(words.size()));
  }
  // Nothing comes but the end.
  static bool Closed(int fd) {
    char byte = 0;
    ssize_t got = ::recv(fd, &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }
  template <typename Condition>
  bool RunUntil(Condition condition) {
    TimePoint deadline = SteadyNow() + kDeadline;
    while (!condition() && SteadyNow() < deadline) io.run_one_for(milliseconds(10));
    return condition();
  }

  asio::io_context io{1};
  std::string name = "hvd-test-listener-" + MakeJobId();
  std::vector<ReturnedStream> returned;
  ResumeListener listener{io, [this](ReturnedStream s) { returned.push_back(std::move(s)); }};
  std::vector<UniqueFd> kept, clients;
};

TEST_F(ResumeListenerTest, AcceptsTheKeyHoweverItIsCutAndLeavesTheRestToTheStream) {
  int driver = Knock();
  for (const char* part : {"t", "he k", "eyfirst bytes"}) {
    EXPECT_THAT(returned, IsEmpty());
    Send(driver, part);
    io.restart();
    RunUntil([&] { return io.poll() == 0; });
  }
  ASSERT_TRUE(RunUntil([this] { return !returned.empty(); }));
  char bytes[64] = {};
  EXPECT_EQ(::read(returned[0].input.get(), bytes, sizeof bytes), 11);
  EXPECT_STREQ(bytes, "first bytes");
  EXPECT_FALSE(Closed(clients[0].get())) << "the visitor stays";
  returned.clear();
  EXPECT_TRUE(Closed(clients[0].get())) << "until the connection is not needed any more";
}

TEST_F(ResumeListenerTest, TheKeyOfAnotherDriverSaysThatItIsOne) {
  listener.set_successor_key("its key");
  Send(Knock(), "its key");
  ASSERT_TRUE(RunUntil([this] { return !returned.empty(); }));
  EXPECT_TRUE(returned[0].of_successor);
  Send(Knock(), "the key");
  ASSERT_TRUE(RunUntil([this] { return returned.size() == 2; }));
  EXPECT_FALSE(returned[1].of_successor);
}

TEST_F(ResumeListenerTest, WithoutTheKeyOfAnotherDriverNoneIsLetIn) {
  const int driver = Knock();
  Send(driver, std::string(7, '\0'));
  EXPECT_TRUE(RunUntil([&] { return Closed(driver); }));
  EXPECT_THAT(returned, IsEmpty());
}

TEST_F(ResumeListenerTest, RefusesAnyOtherKey) {
  for (const char* words : {"the koy", "xxxxxxxxxxxxxxxxxxxx"}) {
    int driver = Knock();
    Send(driver, words);
    EXPECT_TRUE(RunUntil([&] { return Closed(driver); })) << words;
    EXPECT_TRUE(RunUntil([&] { return Closed(clients.back().get()); })) << words;
  }
  EXPECT_THAT(returned, IsEmpty());
}

TEST_F(ResumeListenerTest, ManySilentConnectionsDoNotKeepTheDriverOut) {
  std::vector<int> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(Knock());
  Send(Knock(), "the key");
  ASSERT_TRUE(RunUntil([this] { return !returned.empty(); }));
  EXPECT_TRUE(RunUntil([&] { return Closed(silent.front()); }));
}

TEST_F(ResumeListenerTest, AConnectionWithoutDescriptorsIsRefused) {
  Result<UniqueFd> client = ConnectLink(name);
  ASSERT_TRUE(client.ok());
  ASSERT_TRUE(SendLink(client->get(), LinkJoin{}).ok());
  EXPECT_TRUE(RunUntil([&] { return Closed(client->get()); }));
}

}  // namespace
}  // namespace hvd
