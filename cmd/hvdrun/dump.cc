// hvdrun dump: the records of a running job's recorders, as a timeline; --stacks and --native: what
// its Python does, and the C below it.
#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

#include "cmd/hvdrun/verbs.h"
#include "launcher/live/external_views.h"
#include "launcher/live/stacks_text.h"
#include "launcher/live/view_client.h"
#include "launcher/live/view_json.h"
#include "launcher/live/view_server.h"
#include "launcher/output/text/phrases.h"
#include "launcher/process/jobs/local_jobs.h"
#include "runtime/base/clock.h"
#include "runtime/base/text/format.h"
#include "runtime/trace/chrome_text.h"
#include "runtime/trace/ticks.h"
#include "runtime/trace/timeline_writer.h"

namespace hvd {
namespace {

constexpr Duration kPatience = std::chrono::seconds(15);

struct DumpOptions {
  std::string job, file;
  bool stacks = false, native = false, json = false;
};

struct Ring {
  RingHead head;
  std::vector<TraceRecord> records;  // by the clock of this host
};

Result<DumpOptions> ParseDumpOptions(const std::vector<std::string>& args) {
  const Status usage = InvalidArgument(
      "takes the id of one job, --json, and -o FILE, --stacks or --native; try hvdrun dump --help");
  DumpOptions options;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "-o" || args[i] == "--output") {
      if (++i == args.size() || args[i].empty()) return usage;
      options.file = args[i];
    } else if (args[i] == "--stacks") {
      options.stacks = true;
    } else if (args[i] == "--native") {
      options.stacks = options.native = true;
    } else if (args[i] == "--json") {
      options.json = true;
    } else if (args[i].empty() || args[i][0] == '-' || !options.job.empty()) {
      return usage;
    } else {
      options.job = args[i];
    }
  }
  if (options.stacks && !options.file.empty())
    return InvalidArgument("prints stacks on stdout: leave out -o, or say > FILE");
  return options;
}

// Receives the rest of a dump: passes each part to `part`; returns a sentence about the parts that
// are missing.
Result<std::string> ReceiveParts(
    ViewClient& client, const std::function<void(const RingHead&, const std::string&)>& part) {
  for (;;) {
    std::string line, bytes;
    while (!client.PopLine(&line)) {
      if (Status came = client.Receive(kPatience); !came.ok()) return came;
    }
    Result<RingHead> head = ParseRingHead(line);
    if (!head.ok()) return head.status();
    if (head->end) return head->trouble;
    if (head->bytes > RingHead::kMostBytes) return InvalidArgument("a part is too large");
    while (!client.PopBytes(head->bytes, &bytes)) {
      if (Status came = client.Receive(kPatience); !came.ok()) return came;
    }
    part(*head, bytes);
  }
}

int DumpStacks(const std::string& job, bool native, bool json) {
  Result<ViewClient> client = ViewClient::Ask(job, native ? kAskNative : kAskStacks);
  if (!client.ok()) return FailVerb("dump", client.status().message(), 1);
  std::vector<RankStacks> ranks;
  bool any = false;
  const Result<std::string> trouble =
      ReceiveParts(*client, [&](const RingHead& head, const std::string& text) {
        ranks.push_back({head.rank, head.host, text, head.trouble});
        any = any || !text.empty();
      });
  if (!trouble.ok()) return FailVerb("dump", trouble.status().message(), 1);
  if (!trouble->empty()) VerbLine("dump", *trouble);
  if (ranks.empty()) return FailVerb("dump", "no rank of the job runs", 1);
  const int printed = PrintText(json ? StacksJson(ranks) : StacksText(std::move(ranks)));
  return any ? printed : 1;
}

std::vector<TraceRecord> RecordsIn(const std::string& bytes, int64_t offset_ns) {
  std::vector<TraceRecord> records(bytes.size() / sizeof(TraceRecord));
  std::memcpy(records.data(), bytes.data(), records.size() * sizeof(TraceRecord));
  for (TraceRecord& record : records) {
    if (record.kind != TraceKind::kName) record.stamp += static_cast<uint64_t>(offset_ns);
  }
  return records;
}

// Of all events.
struct Span {
  int64_t first_ns = std::numeric_limits<int64_t>::max();
  int64_t last_ns = std::numeric_limits<int64_t>::min();
  size_t events = 0;
};

Span SpanOf(const std::vector<TraceRecord>& records) {
  Span span;
  for (const TraceRecord& record : records) {
    if (record.kind == TraceKind::kName || record.kind == TraceKind::kNone) continue;
    ++span.events;
    span.first_ns = std::min(span.first_ns, static_cast<int64_t>(record.stamp));
    span.last_ns = std::max(span.last_ns, static_cast<int64_t>(record.stamp));
  }
  return span;
}

Span SpanOf(const std::vector<Ring>& rings) {
  Span whole;
  for (const Ring& ring : rings) {
    const Span span = SpanOf(ring.records);
    if (span.events == 0) continue;
    whole.events += span.events;
    whole.first_ns = std::min(whole.first_ns, span.first_ns);
    whole.last_ns = std::max(whole.last_ns, span.last_ns);
  }
  if (whole.events == 0) whole.first_ns = whole.last_ns = SteadyNanoseconds();
  return whole;
}

Status WriteRings(const std::vector<Ring>& rings, const Span& span, const std::string& path) {
  const int64_t wall_us = (WallNanoseconds() - (SteadyNanoseconds() - span.first_ns)) / 1000;
  auto writer = TimelineWriter::Create({path, span.first_ns, wall_us, 0});
  if (!writer.ok()) return writer.status();
  for (const Ring& ring : rings) {
    const RingHead& head = ring.head;
    const Span own = SpanOf(ring.records);
    const int64_t begun_ns = own.events > 0 ? own.first_ns : span.first_ns;
    (*writer)->BeginRank(head.rank, head.host, head.generation, begun_ns);
    (*writer)->NoteClock(head.rank, head.host, head.offset_ns, head.uncertainty_ns);
    (*writer)->Add(head.rank, ring.records, 0);
  }
  Status written = (*writer)->Flush();
  (*writer)->Finish();
  return written;
}

}  // namespace

int DumpVerb(const std::vector<std::string>& args) {
  Result<DumpOptions> options = ParseDumpOptions(args);
  if (!options.ok()) return FailVerb("dump", options.status().message());
  const Result<std::string> job = FindView(ListJobs(), ListExternalViews(), JobIdFor(options->job));
  if (!job.ok()) return FailVerb("dump", job.status().message());
  if (options->stacks) return DumpStacks(*job, options->native, options->json);
  if (options->file.empty()) options->file = "hvd-dump-" + *job + ".json";
  if (Status may = TraceFile::Check(options->file); !may.ok())
    return FailVerb("dump", may.message());
  Result<ViewClient> client = ViewClient::Ask(*job, kAskDump);
  if (!client.ok()) return FailVerb("dump", client.status().message(), 1);
  std::vector<Ring> rings;
  const Result<std::string> trouble =
      ReceiveParts(*client, [&](const RingHead& head, const std::string& bytes) {
        rings.push_back({head, RecordsIn(bytes, head.offset_ns)});
      });
  if (!trouble.ok()) return FailVerb("dump", trouble.status().message(), 1);
  if (rings.empty())
    return FailVerb(
        "dump",
        "no rank of the job has called hvd.init() yet" + (trouble->empty() ? "" : "; " + *trouble),
        1);
  const Span span = SpanOf(rings);
  if (Status written = WriteRings(rings, span, options->file); !written.ok())
    return FailVerb("dump", written.message(), 1);
  if (!trouble->empty()) VerbLine("dump", *trouble);
  if (options->json) {
    return PrintText(
        Format("{{\"file\": {}, \"events\": {}, \"ranks\": {}, \"seconds\": {:.6f}, "
               "\"missing\": {}}}\n",
               JsonText(options->file, SIZE_MAX), span.events, rings.size(),
               static_cast<double>(span.last_ns - span.first_ns) / 1e9,
               trouble->empty() ? "null" : JsonText(*trouble)));
  }
  return PrintText(options->file + ": " + Counted(span.events, "event", "events") + " of " +
                   Counted(rings.size(), "rank", "ranks") + ", the last " +
                   SecondsText(Duration(span.last_ns - span.first_ns)) + "\n");
}

}  // namespace hvd
