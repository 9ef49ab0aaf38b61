#include "launcher/messages.h"

#include <gtest/gtest.h>

#include <random>

namespace hvd {
namespace {

StartJob Start() {
  StartJob start;
  start.job_key = "key";
  start.host = "h";
  start.size = 2;
  start.slots = {{0, 0, 0, 2, 0, 1}, {1, 0, 1, 2, 0, 1}};
  start.argv = {"python", "train.py", ""};
  start.directory = "/";
  start.environment = {"A=1", "B="};
  start.worker_environment = {"HOROVOD_CYCLE_TIME=1"};
  start.terminate_grace_ms = 3000;
  start.given_environment = {"C=3"};
  start.master_address = "127.0.0.1";
  start.master_port = 29500;
  start.stdin_to = StdinTo::kAll;
  start.machine_parts = 2;
  start.layout = {{0, 0, 2}};
  start.listen_addresses = {"127.0.0.1", "::1"};
  start.first_port = 7000;
  return start;
}

const std::vector<ToAgent> kToAgent = {
    Start(),     BeginEpoch{3},        BreakEpoch{3, "why"}, SignalWorkers{15},
    FinishJob{}, WorkerInput{"typed"}, KeyValue{3, "k", "v"}};
const std::vector<ToDriver> kToDriver = {AgentReady{1, 2, "means"},
                                         WorkerStarted{1, 77},
                                         WorkerNotStarted{1, 2, "no"},
                                         RankJoined{1},
                                         RankLeft{1, 3, 99},
                                         RankLost{1, 77, 3, 99, "died"},
                                         WorkerExited{1, 77, {true, 9}, 99, "last"},
                                         WorkerOutput{1, OutputStream::kStderr, "bytes"},
                                         InputTaken{5},
                                         AgentNote{"how"},
                                         AgentGone{},
                                         PutKey{3, "k", "v"},
                                         WantKey{3, "k"}};

TEST(Messages, OutputHasAShortWay) {
  std::string message = EncodeToDriver(WorkerOutput{7, OutputStream::kStderr, "held and bytes"});
  EXPECT_EQ(EncodeOutput(7, OutputStream::kStderr, "held ", "and bytes"), message);
  auto output = PeekOutput(message);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->rank, 7U);
  EXPECT_EQ(output->stream, OutputStream::kStderr);
  EXPECT_EQ(output->bytes, "held and bytes");
  EXPECT_FALSE(PeekOutput(message + "x"));
  EXPECT_FALSE(PeekOutput(message.substr(0, 9)));
  EXPECT_FALSE(PeekOutput(EncodeToDriver(RankJoined{1})));
  EXPECT_FALSE(PeekOutput(""));
}

template <typename Messages, typename Encode, typename Decode>
void SurvivesAndRefuses(const Messages& messages, Encode encode, Decode decode) {
  for (const auto& message : messages) {
    std::string bytes = encode(message);
    auto decoded = decode(bytes);
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(decoded->index(), message.index());
    EXPECT_EQ(encode(*decoded), bytes);
    for (size_t length = 0; length < bytes.size(); ++length)
      EXPECT_FALSE(decode(bytes.substr(0, length)).ok());
    EXPECT_FALSE(decode(bytes + "x").ok());
  }
}

TEST(Messages, EveryMessageSurvivesTheWireAndNoOtherLengthDoes) {
  SurvivesAndRefuses(kToAgent, EncodeToAgent, DecodeToAgent);
  SurvivesAndRefuses(kToDriver, EncodeToDriver, DecodeToDriver);
}

TEST(Messages, OutputOverheadIsWhatItSays) {
  EXPECT_EQ(EncodeToDriver(WorkerOutput{1, OutputStream::kStdout, "12345"}).size(),
            5 + kOutputOverhead);
}

TEST(Messages, AHugeCountAllocatesNothing) {
  std::string bytes = EncodeToAgent(Start());
  std::mt19937 random(20240504);
  for (int round = 0; round < 5000; ++round) {
    std::string damaged = bytes;
    for (int i = 0; i < 4; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    (void)DecodeToAgent(damaged).ok();
    (void)DecodeToDriver(damaged).ok();
  }
}

}  // namespace
}  // namespace hvd
