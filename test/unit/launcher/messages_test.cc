#include "launcher/wire/messages.h"

#include <gtest/gtest.h>

#include <random>

namespace hvd {
namespace {

StartJob Start() {
  StartJob start;
  start.job_id = "id";
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

// One statement each: as one list, g++ 12 takes all the memory of a machine to compile them.
std::vector<ToAgent> OneOfEachToAgent() {
  std::vector<ToAgent> all;
  all.emplace_back(ExamineRanks{1, 3, {2, 5}});
  all.emplace_back(Start());
  all.emplace_back(BeginGeneration{3});
  all.emplace_back(BreakGeneration{3, "why"});
  all.emplace_back(AwaitDriver{"key", 60000});
  all.emplace_back(SignalWorkers{15});
  all.emplace_back(FinishJob{});
  all.emplace_back(WorkerInput{"typed"});
  all.emplace_back(KeyValue{3, "k", "v"});
  all.emplace_back(ProbeConnectivity{"key", 1, {0, 2}, {"a", "c"}, {"eth0"}, 7000, 7009});
  all.emplace_back(LookAtCommand{"python", "/bin", "/"});
  all.emplace_back(TreeDown{{{1, 4, "inner"}, {2, 3, ""}}});
  all.emplace_back(Resend{});
  all.emplace_back(AskTime{1});
  all.emplace_back(ExamineHost{"/d", "python3", {"A=1"}, 25'000, 5'000});
  all.emplace_back(OpenProbe{"key", 1, {0}, {"h"}, {"eth0"}, 7000, 7001});
  all.emplace_back(MeasurePair{1, 2, 1});
  all.emplace_back(UseRelay{1, {2, 3}});
  all.emplace_back(TraceTaken{32});
  all.emplace_back(RelayOpen{5, 1, 2});
  all.emplace_back(RelayData{5, "bytes"});
  all.emplace_back(RelayClose{5});
  all.emplace_back(RelayCredit{5, 9});
  all.emplace_back(AskMemory{1});
  return all;
}
const std::vector<ToAgent> kToAgent = OneOfEachToAgent();
RankFacts ARank() {
  RankFacts facts{1, 77, 1, "S", "read", 3, 9, "x", 8, "w", {}, 1, {5, 6}, "t.py:3 in f", 2000};
  facts.waits = {{5, 1, "x", 0, 2000, 10, 0, {2, 3}}, {6, 2, "y", 1, 1, 1, 1, {}}};
  return facts;
}
std::vector<ToDriver> OneOfEachToDriver() {
  std::vector<ToDriver> all;
  all.emplace_back(AgentReady{1, 2, "means", "0.1", 7, "boot", 8});
  all.emplace_back(WorkerStarted{1, 77});
  all.emplace_back(WorkerNotStarted{1, 2, "no"});
  all.emplace_back(RankJoined{1});
  all.emplace_back(RankLeft{1, 3, 99, true});
  all.emplace_back(RankLost{1, 77, 3, 99, "died", "doing", true});
  all.emplace_back(WorkerExited{1, 77, {true, 9}, 99, "last"});
  all.emplace_back(WorkerOutput{1, OutputStream::kStderr, "bytes"});
  all.emplace_back(InputTaken{5});
  all.emplace_back(AgentNote{"how"});
  all.emplace_back(AgentGone{});
  all.emplace_back(PutKey{3, "k", "v"});
  all.emplace_back(WantKey{3, "k"});
  all.emplace_back(ConnectivityProbed{"no", {"::1", ""}, "record", {"", "why"}});
  all.emplace_back(CommandSeen{{"python", "/", "/bin/python", "/bin/python3.11", "3.11", 2, 13}});
  all.emplace_back(TreeUp{{{1, "inner"}, {2, ""}}});
  all.emplace_back(TreeCut{"why"});
  all.emplace_back(RanksJoined{{{0, 8}}});
  all.emplace_back(AgentPath{"/bin/hvdrun", "listener"});
  all.emplace_back(TimeTold{1, 2, 3});
  all.emplace_back(HostExam{{"cores=2"}});
  all.emplace_back(PairMeasured{1, 2, "no", "::1", 3, 4});
  all.emplace_back(RelayMeasured{1, 2, 3, 4, "no"});
  all.emplace_back(RelayOpen{5, 1, 2});
  all.emplace_back(RelayData{5, "bytes"});
  all.emplace_back(RelayClose{5});
  all.emplace_back(RelayCredit{5, 9});
  all.emplace_back(AgentWarning{"beware"});
  all.emplace_back(TraceBegun{1, 2, 3, 4});
  all.emplace_back(TraceRecords{1, 2, 3, 4, "records"});
  all.emplace_back(CommitsHeld{3, 9});
  all.emplace_back(StopRequested{15});
  all.emplace_back(MemoryTold{1, 4096});
  all.emplace_back(StallSeen{3, 1, {2}});
  all.emplace_back(RanksExamined{1, 3, {ARank()}});
  return all;
}
const std::vector<ToDriver> kToDriver = OneOfEachToDriver();

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
