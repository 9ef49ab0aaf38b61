// Any bytes as a message of the link or of the stream: refused, or a message that encodes to
// something that decodes.
#include "launcher/wire/messages.h"
#include "runtime/net/link.h"
#include "test/fuzz/seeds.h"

namespace {
using namespace hvd;
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  std::vector<std::string> seeds;
  seeds.push_back(EncodeLink(LinkHello{.slot = 1, .pid = 2, .job_key = "key"}));
  seeds.push_back(EncodeLink(LinkJoin{}));
  seeds.push_back(EncodeLink(LinkGeneration{.generation = 1}));
  seeds.push_back(EncodeLink(LinkBroken{1, "reason"}));
  seeds.push_back(EncodeLink(LinkSegment{1, 2, "error"}));
  seeds.push_back(EncodeLink(LinkPut{1, "key", "value"}));
  seeds.push_back(EncodeLink(LinkGet{1, "key"}));
  seeds.push_back(EncodeLink(LinkValue{1, "key", "value"}));
  seeds.push_back(EncodeLink(LinkLayout{1, {{0, 0, 2}, {1, 0, 1}}}));
  seeds.push_back(EncodeLink(LinkDismissed{"reason"}));
  seeds.push_back(EncodeToAgent(KeyValue{1, "key", "value"}));
  seeds.push_back(EncodeToDriver(PutKey{1, "key", "value"}));
  seeds.push_back(EncodeToDriver(WantKey{1, "key"}));
  seeds.push_back(EncodeToAgent(ExamineHost{"/d", "python3", {"A=1"}, 1, 1}));
  seeds.push_back(EncodeToDriver(HostExam{{"cores=2", "done=1"}}));
  seeds.push_back(EncodeToDriver(PairMeasured{1, 2, "no", "::1", 3, 4}));
  seeds.push_back(EncodeToAgent(ExamineRanks{1, 1, {2}}));
  seeds.push_back(EncodeToDriver(StallReport{1, 2, {3}}));
  RankFacts facts{1, 77, 1, "S", "read", 3, 9, "x", 8, "w", {}, 1, {5, 6}, "t.py:3 in f"};
  facts.waits = {{5, 1, "x", 0, 2000, 10, 0, {2, 3}}};
  seeds.push_back(EncodeToDriver(RanksExamined{1, 1, {facts}}));
  seeds.push_back(EncodeToAgent(AskCounts{1, 5000}));
  seeds.push_back(EncodeToDriver(
      CountsReply{1, 3, 9, {{0, 1, RankActivity::kWaiting, 1, 2, 3, 4, 5, 6, 0, "grad"}}}));
  seeds.push_back(EncodeToDriver(StacksReply{1, {{2, "text", ""}}}));
  seeds.push_back(EncodeToDriver(ScriptObserved{{{}}}));
  FlightEntry entry{7, 0, FlightState::kStarted, "all_reduce", "Float [4]", "Float", 4, 4};
  seeds.push_back(
      EncodeToDriver(FlightReply{1, {{2, 3, "", {{"0", "default_pg", {0, 1}, 7, {entry}}}}}}));
  seeds.push_back(EncodeToDriver(RingReply{1, 2, 3, 4, std::string(32, 0)}));
  seeds.push_back(EncodeToAgent(BeginGeneration{1}));
  seeds.push_back(EncodeToAgent(BreakGeneration{1, "reason"}));
  seeds.push_back(EncodeToAgent(AwaitDriver{"key", 60000}));
  seeds.push_back(EncodeToAgent(FinishJob{}));
  seeds.push_back(EncodeToDriver(RankJoined{1}));
  seeds.push_back(EncodeToAgent(TraceTaken{32}));
  seeds.push_back(EncodeToDriver(TraceBegun{1, 1, 1, 5}));
  seeds.push_back(EncodeToDriver(TraceRecords{1, 1, 1, 5, std::string(32, 0)}));
  seeds.push_back(EncodeToDriver(AgentGone{}));
  seeds.push_back(EncodeToDriver(WorkerOutput{1, OutputStream::kStderr, "x"}));
  seeds.push_back(EncodeToAgent(TreeDown{{{0, 2, "inner"}}}));
  seeds.push_back(EncodeToDriver(TreeUp{{{1, "inner"}}}));
  seeds.push_back(EncodeToDriver(RanksJoined{{{0, 8}}}));
  seeds.push_back(EncodeToAgent(RelayData{5, "bytes"}));
  seeds.push_back(EncodeToDriver(RelayOpen{5, 1, 2}));
  StartJob start;
  start.job_id = "0123456789abcdef";
  start.program.argv = {"python", "t.py"};
  start.program.environment = {"A=b"};
  start.ranks.slots = {Placement{}};
  start.ranks.layout = {{0, 0, 1}};
  start.meeting.listen_addresses = {"127.0.0.1"};
  seeds.push_back(EncodeToAgent(start));
  WriteSeeds(*argc, *argv, seeds);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (auto message = DecodeLink(bytes); message.ok()) {
    Must(DecodeLink(EncodeLink(*message)).ok());
    if (auto* layout = std::get_if<LinkLayout>(&*message)) {
      uint32_t size = 0;
      for (const RankRun& run : layout->runs) size += run.count * run.hosts;
      if (auto places = PlacesOf(layout->runs, size); places.ok())
        Must(PlacesOf(RunsOf(*places), size).ok());
    }
  }
  if (auto message = DecodeToAgent(bytes); message.ok())
    Must(DecodeToAgent(EncodeToAgent(*message)).ok());
  if (auto message = DecodeToDriver(bytes); message.ok())
    Must(DecodeToDriver(EncodeToDriver(*message)).ok());
  return 0;
}
