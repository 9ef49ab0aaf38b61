// Any bytes as a message of the link or of the stream: refused, or a message that encodes to something that decodes.
#include "launcher/messages.h"
#include "runtime/net/link.h"
#include "test/fuzz/seeds.h"

namespace {
using namespace hvd;
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  std::vector<std::string> seeds = {EncodeLink(LinkHello{.slot = 1, .pid = 2, .job_key = "key"}),
                                    EncodeLink(LinkJoin{}),
                                    EncodeLink(LinkEpoch{.epoch = 1}),
                                    EncodeLink(LinkBroken{1, "reason"}),
                                    EncodeLink(LinkSegment{1, 2, "error"}),
                                    EncodeLink(LinkPut{1, "key", "value"}),
                                    EncodeLink(LinkGet{1, "key"}),
                                    EncodeLink(LinkValue{1, "key", "value"}),
                                    EncodeLink(LinkLayout{1, {{0, 0, 2}, {1, 0, 1}}}),
                                    EncodeToAgent(KeyValue{1, "key", "value"}),
                                    EncodeToDriver(PutKey{1, "key", "value"}),
                                    EncodeToDriver(WantKey{1, "key"}),
                                    EncodeToAgent(BeginEpoch{1}),
                                    EncodeToAgent(BreakEpoch{1, "reason"}),
                                    EncodeToAgent(FinishJob{}),
                                    EncodeToDriver(RankJoined{1}),
                                    EncodeToDriver(AgentGone{}),
                                    EncodeToDriver(WorkerOutput{1, OutputStream::kStderr, "x"})};
  StartJob start;
  start.argv = {"python", "t.py"};
  start.environment = {"A=b"};
  start.slots = {Placement{}};
  start.layout = {{0, 0, 1}};
  start.listen_addresses = {"127.0.0.1"};
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
      for (const RankRun& run : layout->runs) size += run.count;
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
