// Any bytes as a trace file: events or one sentence. A text that nlohmann/json takes as a list of
// objects is read whole, a merged text is JSON again, and a report is made of whatever was read.
#include <nlohmann/json.hpp>

#include "test/fuzz/seeds.h"
#include "timeline/convert/perfetto_export.h"
#include "timeline/convert/trace_merge.h"
#include "timeline/read/trace_source.h"
#include "timeline/report/analysis.h"
#include "timeline/report/facts_collector.h"
#include "timeline/report/report_output.h"

namespace {
using namespace hvd;
using Json = nlohmann::json;
using Sources = std::vector<std::unique_ptr<TraceSource>>;

// How many events there are; -1: this is no list of objects, or nested too deeply for us.
int64_t EventsIn(const std::string& text) {
  constexpr int kDeepest = 60;
  if (text.find('\0') != std::string::npos) return -1;  // the end of a text for nlohmann/json
  bool deep = false;
  const auto look = [&](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > kDeepest;
    return true;
  };
  const Json json = Json::parse(text, look, false);
  if (json.is_discarded() || deep || !json.is_array()) return -1;
  for (const Json& event : json) {
    if (!event.is_object()) return -1;
  }
  return static_cast<int64_t>(json.size());
}

void CheckSentence(const Status& status) {
  Must(!status.message().empty() && status.message().find('\n') == std::string::npos);
}

void ReadWhole(const std::string& text, int64_t events) {
  auto source = TraceSource::OfText("f", text);
  if (!source.ok()) {
    Must(events < 0);
    return CheckSentence(source.status());
  }
  FactsCollector collector;
  std::string perfetto;
  PerfettoExport converter((*source)->origin(), &perfetto);
  while (const TraceEvent* event = (*source)->Next()) {
    collector.Add(*event);
    converter.Add(*event);
  }
  if (!(*source)->status().ok()) {
    Must(events < 0);
    CheckSentence((*source)->status());
  }
  if (events >= 0) Must((*source)->events() == static_cast<uint64_t>(events));
  const Report report = MakeReport(collector.Finish(), "f");
  Must(!ReportText(report).empty() && !ReportPage(report).empty());
}

void MergeTwice(const std::string& text, int64_t events) {
  Sources sources;
  for (const char* name : {"a", "b"}) {
    auto source = TraceSource::OfText(name, text);
    if (!source.ok()) return;
    sources.push_back(std::move(*source));
  }
  std::string merged;
  auto counts = MergeTraces(sources, &merged, [] { return true; });
  if (!counts.ok()) return CheckSentence(counts.status());
  if (events < 0) return;
  const Json json = Json::parse(merged, nullptr, false);
  Must(!json.is_discarded() && json.size() == counts->events);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::string timeline =
      "[\n"
      R"({"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"rank 0 on a")"
      R"(,"start_time_since_epoch_in_micros":7}},)"
      R"({"ph":"M","name":"thread_name","pid":0,"tid":1,"args":{"name":"t\u00e9\ud83d\ude00"}},)"
      R"({"ph":"i","name":"GENERATION","ts":0.5,"pid":0,"tid":0,"s":"p")"
      R"(,"args":{"generation":1,"host":"a"}},)"
      R"({"ph":"B","name":"NEGOTIATE_ALLREDUCE","ts":1,"pid":0,"tid":1},)"
      R"({"ph":"X","name":"0","ts":1,"pid":0,"tid":1,"dur":0},{"ph":"E","ts":2,"pid":0,"tid":1},)"
      R"({"ph":"B","name":"ALLREDUCE","ts":2.125,"pid":0,"tid":1},)"
      R"({"ph":"E","ts":3,"pid":0,"tid":1,"args":{"dtype":"float32","shape":"[3]","bytes":12}},)"
      R"({"ph":"B","name":"WAIT","ts":1,"pid":0,"tid":0,"args":{"tensor":"t"}},{"ph":"E")"
      R"(,"ts":3,"pid":0,"tid":0},)"
      R"({"ph":"i","name":"LAST_TO_ARRIVE","ts":2,"pid":0,"tid":1,"args":{"rank":0)"
      R"(,"late_ns":5,"first_waited_ns":9}})"
      "      \n]";
  WriteSeeds(
      *argc, *argv,
      {timeline,
       R"({"schemaVersion":1,"distributedInfo":{"rank":1},"traceEvents":[{"ph":"X","name":"a",)"
       R"("pid":"Spans","tid":1,"ts":1e3,"dur":2,"id":3}],"baseTimeNanoseconds":1700})",
       R"([{"ph":"C","args":[null,true,-1.5e-3]},{}])", "[]", "\x1f\x8b"});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const int64_t events = EventsIn(text);
  ReadWhole(text, events);
  MergeTwice(text, events);
  return 0;
}
