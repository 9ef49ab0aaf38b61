#include "launcher/wire/messages.h"

#include <gtest/gtest.h>

#include <set>
#include <span>

#include "runtime/base/text/hex_text.h"

namespace hvd {
namespace {

StartJob Start() {
  StartJob start;
  start.job_id = "id";
  start.job_key = "key";
  start.host = "h";
  start.ranks.size = 2;
  start.ranks.slots = {{0, 0, 0, 2, 0, 1}, {1, 0, 1, 2, 0, 1}};
  start.program.argv = {"python", "train.py", ""};
  start.program.directory = "/";
  start.program.environment = {"A=1", "B="};
  start.program.settings = {"HOROVOD_CYCLE_TIME=1"};
  start.limits.terminate_grace_ms = 3000;
  start.program.given = {"C=3"};
  start.meeting.master_address = "127.0.0.1";
  start.meeting.master_port = 29500;
  start.program.stdin_to = StdinTo::kAll;
  start.share.parts = 2;
  start.ranks.layout = {{0, 0, 2}};
  start.meeting.listen_addresses = {"127.0.0.1", "::1"};
  start.meeting.first_port = 7000;
  start.tree.host = 1;
  start.tree.hosts = 4;
  start.tree.above = "record";
  start.ranks.workers = {4, 5};
  start.meeting.interfaces = {"eth0"};
  start.policy = {1, 0, 1};
  start.trace = TraceMode::kOn;
  start.meeting.rendezvous = "10.0.0.1:4711";
  return start;
}

// One statement each: as one list, g++ 12 takes all the memory of a machine to compile them.
std::vector<ToAgent> OneOfEachToAgent() {
  std::vector<ToAgent> all;
  all.emplace_back(ExamineRanks{1, 3, {2, 5}});
  all.emplace_back(Start());
  all.emplace_back(BeginGeneration{3, 2, 0, {{0, 0, 2}}, {{4, {1, 0, 1, 2, 0, 1}}}, 1});
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
  all.emplace_back(AskCounts{1, 5000});
  all.emplace_back(AskRings{1});
  all.emplace_back(AskStacks{1, 1});
  all.emplace_back(AskFlight{1});
  all.emplace_back(AwaitPlaces{});
  all.emplace_back(AddWorkers{{2}, {{2, 1, 0, 1, 0, 2}}, 3, 0, "10.0.0.1", 4711, 1, "stock"});
  all.emplace_back(SignalWorker{1, 9});
  all.emplace_back(DismissWorker{1, "why"});
  all.emplace_back(HoldCommits{3});
  all.emplace_back(ActAtCommit{3, 7, 2, 5000});
  all.emplace_back(MasterPortTaken{7, 29500, "h"});
  all.emplace_back(ForwardSignal{1, 10});
  all.emplace_back(AwaitSuccessor{"key", 60000});
  all.emplace_back(TakeOver{{{1, OutputStream::kStderr, 9}}});
  all.emplace_back(OutputPrinted{1, OutputStream::kStdout, 9});
  return all;
}
const std::vector<ToAgent> kToAgent = OneOfEachToAgent();
RankFacts ARank() {
  RankFacts facts{1, 77, 1, "S", "read", 3, 9, "x", 8, "w", {}, 1, {5, 6}, "t.py:3 in f"};
  facts.waits = {{5, 1, "x", 0, 2000, 10, 0, {2, 3}}, {6, 2, "y", 1, 1, 1, 1, {}}};
  return facts;
}
std::vector<ToDriver> OneOfEachToDriver() {
  std::vector<ToDriver> all;
  all.emplace_back(AgentReady{1, 2, "means", "0.1", 7, "boot", 8, 16});
  all.emplace_back(WorkerStarted{1, 77});
  all.emplace_back(WorkerNotStarted{1, 2, "no"});
  all.emplace_back(RankJoined{1});
  all.emplace_back(RankLeft{1, 3, 99, true});
  all.emplace_back(RankLost{1, 77, 3, 99, "died", "doing", true});
  all.emplace_back(WorkerExited{1, 77, {true, 9}, 99, "last", true, 7});
  all.emplace_back(WorkerOutput{1, OutputStream::kStderr, "bytes"});
  all.emplace_back(InputTaken{5});
  all.emplace_back(AgentNote{"how"});
  all.emplace_back(AgentGone{});
  all.emplace_back(PutKey{3, "k", "v"});
  all.emplace_back(WantKey{3, "k"});
  all.emplace_back(ConnectivityProbed{"no", {"::1", ""}, "record", {"", "why"}});
  all.emplace_back(CommandReport{{"python", "/", "/bin/python", "/bin/python3.11", "3.11", 2, 13}});
  all.emplace_back(TreeUp{{{1, "inner"}, {2, ""}}});
  all.emplace_back(TreeCut{"why"});
  all.emplace_back(RanksJoined{{{0, 8}}});
  all.emplace_back(AgentPath{"/bin/hvdrun", "listener"});
  all.emplace_back(TimeReply{1, 2, 3});
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
  all.emplace_back(MemoryReply{1, 4096});
  all.emplace_back(StallReport{3, 1, {2}});
  all.emplace_back(GenerationIdle{3, 2500});
  all.emplace_back(RanksExamined{1, 3, {ARank()}});
  all.emplace_back(
      CountsReply{1, 3, 9, {{0, 1, RankActivity::kWaiting, 1, 2, 3, 4, 5, 6, 0, "grad"}, {}}});
  all.emplace_back(RingReply{1, 2, 3, 4, "records"});
  all.emplace_back(RingsOver{1});
  all.emplace_back(StacksReply{1, {{2, "text", ""}, {3, "", "reason"}}});
  all.emplace_back(ScriptObserved{{{1, 1, 5, 2, "S", "futex", 3, 4, 5, 6, 1, 7, 8, "all_reduce", 1,
                                    0, "a.py:1 in f", "g (b.py)", "why"},
                                   {}}});
  all.emplace_back(
      FlightReply{1,
                  {{2,
                    3,
                    "",
                    {{"0",
                      "default_pg",
                      {0, 1},
                      7,
                      {{7, 0, FlightState::kStarted, "all_reduce", "Float [4]", "Float", 4, 5}}}}},
                   {4, 5, "why", {}}}});
  all.emplace_back(PlacesRefused{"no"});
  all.emplace_back(PlaceTaken{1, 2});
  all.emplace_back(MasterPortTaken{7, 29500, "h"});
  all.emplace_back(SignalForwarded{1, 10, 2});
  all.emplace_back(HostSnapshot{1, 3, {{1, 77, 1, 2}}, {{1, 3, 99, true}}, {}, {}});
  return all;
}
const std::vector<ToDriver> kToDriver = OneOfEachToDriver();

// The bytes of every message on the wire, in the order of the lists above.
constexpr const char* kToAgentBytes[] = {
    "1c010000000300000000000000020000000200000005000000",
    "00020000006964030000006b657901000000680200000001020000000000000000000000000000000200"
    "000000000000010000000100000000000000010000000200000000000000010000000100000000000000"
    "0000000002000000010000000200000004000000050000000300000006000000707974686f6e08000000"
    "747261696e2e70790000000000000000010000002f0200000003000000413d3102000000423d01000000"
    "14000000484f524f564f445f4359434c455f54494d453d310100000003000000433d3302000000000002"
    "000000ffffffff000002000000090000003132372e302e302e31030000003a3a31010000000400000065"
    "746830581b0000090000003132372e302e302e313c7300000d00000031302e302e302e313a34373131b8"
    "0b0000000000000000000000000000000000000000000000000000000000000000000000000000010000"
    "000400000000000000060000007265636f7264000000000000000001000101",
    "01030000000000000002000000000100000000000000000000000200000001000000010000000400000001000000"
    "000000000100000002000000000000000100000001",
    "02030000000000000003000000776879",
    "14030000006b657960ea000000000000",
    "030f000000",
    "04",
    "05050000007479706564",
    "060300000000000000010000006b0100000076",
    "07030000006b65790100000002000000000000000200000002000000010000006101000000630100000004000000"
    "65746830581b611b00",
    "0806000000707974686f6e040000002f62696e010000002f",
    "0902000000010000000400000005000000696e6e6572020000000300000000000000",
    "0a",
    "0b01000000",
    "0c020000002f6407000000707974686f6e330100000003000000413d31a8610000000000008813000000000000",
    "0d030000006b6579010000000100000000000000010000000100000068010000000400000065746830581b591b",
    "0e010000000200000001",
    "0f01000000020000000200000003000000",
    "1a2000000000000000",
    "1005000000000000000100000002000000",
    "110500000000000000050000006279746573",
    "120500000000000000",
    "1305000000000000000900000000000000",
    "1b01000000",
    "1d0100000088130000",
    "1e01000000",
    "220100000001",
    "2301000000",
    "1f",
    "15010000000200000001000000020000000100000000000000010000000000000002000000030000000008000000"
    "31302e302e302e3167120000010000000500000073746f636b",
    "160100000009000000",
    "170100000003000000776879",
    "180300000000000000",
    "19030000000000000007000000000000000200000088130000",
    "20070000003c7300000100000068",
    "21010000000a000000",
    "24030000006b657960ea000000000000",
    "250100000001000000010900000000000000",
    "2601000000000900000000000000",
};
constexpr const char* kToDriverBytes[] = {
    "000100000002000000050000006d65616e7303000000302e310700000004000000626f6f740800000010000000",
    "01010000004d000000",
    "020100000002000000020000006e6f",
    "0301000000",
    "04010000000300000000000000630000000000000001",
    "05010000004d00000003000000000000006300000000000000040000006469656405000000646f696e6701",
    "06010000004d00000001090000006300000000000000040000006c617374010700000000000000",
    "070100000001050000006279746573",
    "080500000000000000",
    "0903000000686f77",
    "0a",
    "0b0300000000000000010000006b0100000076",
    "0c0300000000000000010000006b",
    "0d020000006e6f02000000030000003a3a3100000000060000007265636f72640200000000000000030000007768"
    "79",
    "0e06000000707974686f6e010000002f0b0000002f62696e2f707974686f6e0f0000002f62696e2f707974686f6e"
    "332e313104000000332e3131020000000d000000",
    "0f020000000100000005000000696e6e65720200000000000000",
    "1003000000776879",
    "11010000000000000008000000",
    "120b0000002f62696e2f68766472756e080000006c697374656e6572",
    "130100000002000000000000000300000000000000",
    "140100000007000000636f7265733d32",
    "150100000002000000020000006e6f030000003a3a3103000000000000000400000000000000",
    "1601000000020000000000000003000000000000000400000000000000020000006e6f",
    "1705000000000000000100000002000000",
    "180500000000000000050000006279746573",
    "190500000000000000",
    "1a05000000000000000900000000000000",
    "1b06000000626577617265",
    "1d010000000200000003000000000000000400000000000000",
    "1e010000000200000003000000000000000400000000000000070000007265636f726473",
    "1c03000000000000000900000000000000",
    "1f0f000000",
    "20010000000010000000000000",
    "210300000000000000010000000100000002000000",
    "2a0300000000000000c409000000000000",
    "2201000000030000000000000001000000010000004d000000010100000053040000007265616403000000090000"
    "00000000000100000078080000000000000001000000770200000005000000000000000100000000000000010000"
    "007800000000d0070000000000000a00000000000000000200000002000000030000000600000000000000020000"
    "00000000000100000079010000000100000000000000010000000000000001000000000102000000050000000000"
    "000006000000000000000b000000742e70793a3320696e2066",
    "23010000000300000000000000090000000000000002000000000000000100000002010000000000000002000000"
    "00000000030000000000000004000000000000000500000000000000060000000000000000040000006772616400"
    "00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "000000000000000000000000000000",
    "240100000002000000030000000400000000000000070000007265636f726473",
    "2501000000",
    "2b0100000002000000020000000400000074657874000000000300000000000000"
    "06000000726561736f6e",
    "2c020000000100000001050000000200000001000000530500000066757465780300000000000000040000000000"
    "000005000000060000000000000001070000000000000008000000000000000a000000616c6c5f72656475636501"
    "000b000000612e70793a3120696e206608000000672028622e707929030000007768790000000000000000000000"
    "00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "000000000000000000000000000000000000000000000000000000",
    "2d01000000020000000200000003000000000000000100000001000000300a00000064656661756c745f70670200"
    "00000000000001000000070000000000000001000000070000000000000000010a000000616c6c5f726564756365"
    "09000000466c6f6174205b345d05000000466c6f6174040000000000000005000000000000000400000005000000"
    "0300000077687900000000",
    "26020000006e6f",
    "270100000002000000",
    "28070000003c7300000100000068",
    "29010000000a00000002000000",
    "2e01030000000000000001000000010000004d000000010200000000000000010000000100000003000000000000"
    "006300000000000000010000000000000000",
};

template <typename Messages, typename Encode>
void HaveTheBytes(const Messages& messages, std::span<const char* const> bytes, Encode encode) {
  ASSERT_EQ(messages.size(), bytes.size());
  std::set<size_t> types;
  for (size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(HexOf(encode(messages[i])), bytes[i]) << "type " << messages[i].index();
    types.insert(messages[i].index());
  }
  EXPECT_EQ(types.size(), std::variant_size_v<typename Messages::value_type>) << "one has no bytes";
}

TEST(Messages, EveryMessageHasItsBytes) {
  HaveTheBytes(kToAgent, kToAgentBytes, EncodeToAgent);
  HaveTheBytes(kToDriver, kToDriverBytes, EncodeToDriver);
}

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

}  // namespace
}  // namespace hvd
