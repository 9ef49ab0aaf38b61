// Any bytes as the memory of a trace ring: its reader and what makes events of it stay inside, and
// every line is valid JSON.
#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/trace/chrome_text.h"
#include "runtime/trace/rank_events.h"
#include "runtime/trace/recorder.h"
#include "runtime/trace/ring_reader.h"
#include "test/fuzz/seeds.h"
#include "test/unit/trace/ring_memory.h"

namespace {
using namespace hvd;

constexpr uint64_t kRecords = 64;

void Load(const RingMemory& memory, const uint8_t* data, size_t size) {
  std::memset(memory.span().data(), 0, memory.span().size());
  // The words of the header that mean something, then records.
  constexpr size_t kWords[] = {0, 64, 128};
  for (size_t at : kWords) {
    const size_t bytes = std::min<size_t>(size, 8);
    std::memcpy(memory.span().data() + at, data, bytes);
    data += bytes;
    size -= bytes;
  }
  std::memcpy(memory.span().data() + kTraceHeaderBytes, data,
              std::min(size, kRecords * sizeof(TraceRecord)));
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  RingMemory memory(kRecords);
  Recorder recorder(memory.span());
  TraceName name;
  recorder.WriteName(&name, std::string("a name\0float32\0[3, 4]", 21));
  for (uint8_t kind = 2; kind <= 8; ++kind)
    recorder.Write({.stamp = kind, .kind = static_cast<TraceKind>(kind), .id = name.id});
  const auto* bytes = reinterpret_cast<const char*>(memory.span().data());
  std::string seed(bytes, 8);
  seed.append(bytes + 64, 8).append(bytes + 128, 8);
  seed.append(bytes + kTraceHeaderBytes, 20 * sizeof(TraceRecord));
  WriteSeeds(*argc, *argv, {seed});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const RingMemory memory(kRecords);
  Load(memory, data, size);
  RingReader reader(memory.span());
  RankEvents events(1);
  TimelineSink sink;
  int depth = 0;
  sink.event = [&](const TimelineEvent& event) {
    depth += event.phase == TimelineEvent::Phase::kBegin;
    depth -= event.phase == TimelineEvent::Phase::kEnd;
    Must(depth >= 0);
    Must(nlohmann::json::accept(EventLine(event, 1)));
  };
  sink.submission = [](const Submission&) {};
  for (int round = 0; round < 3; ++round) {
    std::vector<TraceRecord> records;
    const uint64_t lost = reader.Read(&records, 50);
    Must(records.size() <= kRecords);
    events.Add(records, lost, sink);
  }
  events.Close(sink);
  Must(depth == 0);
  return 0;
}
