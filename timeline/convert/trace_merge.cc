#include "timeline/convert/trace_merge.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include "runtime/base/text/format.h"
#include "runtime/trace/chrome_text.h"
#include "timeline/convert/pid_table.h"

namespace hvd {
namespace {

constexpr int64_t kAtOnce = std::numeric_limits<int64_t>::min();
constexpr size_t kMostName = 1000;
constexpr std::string_view kProcessName = "\"process_name\"";  // as written in the source

// A rewritten part of an event.
struct Change {
  std::string_view what;  // within the event
  std::string_view with;
};
using Changes = std::array<Change, 3>;

// Joins the lines of an event. Spaces at the start of a line are not part of a string: strings
// contain no line breaks.
void AppendInOneLine(std::string* out, std::string_view text) {
  for (;;) {
    const size_t end = text.find('\n');
    *out += text.substr(0, end);
    if (end == std::string_view::npos) return;
    text.remove_prefix(end);
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  }
}

int64_t Sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? std::numeric_limits<int64_t>::max() : kAtOnce + 1;
}

class Merge {
 public:
  Merge(const std::vector<std::unique_ptr<TraceSource>>& sources, std::string* lines,
        const std::function<bool()>& written)
      : sources_(sources), lines_(lines), written_(written), pids_(Keeping(sources)) {}

  Result<MergeCounts> Run();

 private:
  struct Head {
    const TraceEvent* event = nullptr;
    int64_t ns = 0;     // of the merged clock
    int64_t shift = 0;  // what is added to the stamps of the source
  };
  static std::vector<bool> Keeping(const std::vector<std::unique_ptr<TraceSource>>& sources);
  Status CheckClocks() const;
  void ChooseZero();
  void BeginFile();
  bool Advance(size_t index);
  bool WriteRun(size_t index, int64_t until);
  bool Write(size_t index);
  bool WriteProcess(size_t index, const PidTable::Pid& pid);
  void NameProcess(size_t index, std::string_view what, const PidTable::Pid& pid,
                   const std::string& name);
  void WriteChanged(const TraceEvent& event, Changes* changes);
  void BeginLine();
  std::string OwnerOf(size_t index) const;

  const std::vector<std::unique_ptr<TraceSource>>& sources_;
  std::string* const lines_;
  const std::function<bool()>& written_;
  PidTable pids_;
  std::vector<Head> heads_;
  int64_t zero_ns_ = 0;
  MergeCounts counts_;
  std::string stamp_, id_;
};

std::vector<bool> Merge::Keeping(const std::vector<std::unique_ptr<TraceSource>>& sources) {
  std::vector<bool> keeps;
  for (const auto& source : sources) keeps.push_back(source->origin().timeline);
  if (sources.size() == 1) keeps[0] = true;
  return keeps;
}

Status Merge::CheckClocks() const {
  for (const auto& source : sources_) {
    if (source->origin().zero_ns || sources_.size() == 1) continue;
    return InvalidArgument(
        source->origin().path +
        " does not say when it began (start_time_since_epoch_in_micros of hvdrun, "
        "baseTimeNanoseconds of PyTorch's profiler); it cannot be put onto the clock of the "
        "others");
  }
  return Status::Ok();
}

void Merge::ChooseZero() {
  std::optional<int64_t> timelines, all;
  for (size_t i = 0; i < sources_.size(); ++i) {
    const TraceOrigin& origin = sources_[i]->origin();
    const int64_t zero = origin.zero_ns.value_or(0);
    const TraceEvent* first = heads_[i].event;
    const int64_t begun = Sum(zero, first == nullptr ? 0 : NanosecondsOf(first->ts).value_or(0));
    if (origin.timeline) timelines = std::min(timelines.value_or(zero), zero);
    all = std::min(all.value_or(begun), begun);
  }
  // Whole microseconds, as in the file.
  zero_ns_ = timelines.value_or(all.value_or(0)) / 1000 * 1000;
  if (sources_.size() == 1) zero_ns_ = sources_[0]->origin().zero_ns.value_or(0) / 1000 * 1000;
  for (size_t i = 0; i < sources_.size(); ++i) {
    Head& head = heads_[i];
    head.shift = Sum(sources_[i]->origin().zero_ns.value_or(0), -zero_ns_);
    if (head.ns != kAtOnce) head.ns = Sum(head.ns, head.shift);
  }
}

void Merge::BeginFile() {
  const bool timeline = std::any_of(sources_.begin(), sources_.end(),
                                    [](const auto& s) { return s->origin().timeline; });
  const bool known = sources_[0]->origin().zero_ns.has_value();
  if (!known) return;
  BeginLine();
  *lines_ += MetadataLine(timeline ? "process_name" : "trace_start", 0, 0,
                          Format("{}\"start_time_since_epoch_in_micros\":{}",
                                 timeline ? "\"name\":\"rank 0\"," : "", zero_ns_ / 1000));
}

void Merge::BeginLine() { *lines_ += counts_.events++ == 0 ? "[\n" : ",\n"; }

// The next event of the source; false: none left.
bool Merge::Advance(size_t index) {
  Head& head = heads_[index];
  head.event = sources_[index]->Next();
  if (head.event == nullptr) return false;
  head.ns = kAtOnce;
  if (head.event->phase == 'M' || head.event->ts.empty()) return true;
  if (const auto ns = NanosecondsOf(head.event->ts)) head.ns = Sum(*ns, head.shift);
  return true;
}

// Names the source of these processes if their own names do not.
std::string Merge::OwnerOf(size_t index) const {
  const TraceOrigin& origin = sources_[index]->origin();
  if (!origin.timeline && origin.rank >= 0) return Format("rank {}, profiler", origin.rank);
  return std::filesystem::path(origin.path).filename().string();
}

// Name and sort index of a process whose number has changed; false: the event is neither.
bool Merge::WriteProcess(size_t index, const PidTable::Pid& pid) {
  const TraceEvent& event = *heads_[index].event;
  const TraceOrigin& origin = sources_[index]->origin();
  const bool named = event.name == kProcessName;
  const bool sorted = event.name == "\"process_sort_index\"" && !origin.timeline;
  if (sorted && origin.rank < 0) return false;
  if (!named && !sorted) return false;
  NameProcess(index, event.name, pid, named ? NameIn(event.args) : "");
  return true;
}

// `what` is process_name or process_sort_index.
void Merge::NameProcess(size_t index, std::string_view what, const PidTable::Pid& pid,
                        const std::string& name) {
  BeginLine();
  std::string args = Format("\"sort_index\":{}", sources_[index]->origin().rank);
  if (what == kProcessName)
    args = "\"name\":" + JsonText(name + " (" + OwnerOf(index) + ")", kMostName);
  *lines_ += R"({"ph":"M","name":)" + std::string(what) + ",\"pid\":" + pid.text +
             ",\"tid\":0,\"args\":{" + args + "}}";
}

void Merge::WriteChanged(const TraceEvent& event, Changes* changes) {
  std::sort(changes->begin(), changes->end(),
            [](const Change& a, const Change& b) { return a.what.data() < b.what.data(); });
  const char* at = event.text.data();
  for (const Change& change : *changes) {
    if (change.what.empty()) continue;
    AppendInOneLine(lines_, {at, static_cast<size_t>(change.what.data() - at)});
    *lines_ += change.with;
    at = change.what.data() + change.what.size();
  }
  AppendInOneLine(lines_, {at, static_cast<size_t>(event.text.end() - at)});
}

bool Merge::Write(size_t index) {
  const Head& head = heads_[index];
  const TraceEvent& event = *head.event;
  const TraceOrigin& origin = sources_[index]->origin();
  // The time of zero is already in the first line of the file.
  if (origin.timeline && sources_[index]->events() == 1) return true;
  Changes changes;
  if (!event.pid.empty()) {
    const PidTable::Pid& pid = pids_.Find(index, event.pid);
    if (pid.moved) {
      if (event.phase == 'M' && WriteProcess(index, pid)) return written_();
      if (pid.is_new && event.pid[0] == '"')
        NameProcess(index, kProcessName, pid, StringOf(event.pid));
      changes[0] = {event.pid, pid.text};
    }
  }
  if (head.shift != 0 && head.ns != kAtOnce) {
    stamp_.clear();
    AppendMicros(&stamp_, head.ns);
    changes[1] = {event.ts, stamp_};
  }
  // Arrows of different traces must not share an id.
  if (!event.id.empty() && index > 0) {
    constexpr int64_t kMostIds = int64_t{1} << 40;
    const int64_t id = IntegerOf(event.id, -1);
    if (id >= 0 && id < kMostIds) {
      id_ = std::to_string(static_cast<int64_t>(index) * kMostIds + id);
      changes[2] = {event.id, id_};
    }
  }
  BeginLine();
  WriteChanged(event, &changes);
  return written_();
}

// Events of one source as long as they are not later than those of the others.
bool Merge::WriteRun(size_t index, int64_t until) {
  do {
    if (!Write(index)) return false;
    if (!Advance(index)) return sources_[index]->status().ok();
  } while (heads_[index].ns <= until);
  return true;
}

Result<MergeCounts> Merge::Run() {
  HVD_RETURN_IF_ERROR(CheckClocks());
  heads_.resize(sources_.size());
  counts_.files = sources_.size();
  for (size_t i = 0; i < sources_.size(); ++i) Advance(i);
  ChooseZero();
  BeginFile();
  for (;;) {
    size_t next = sources_.size();
    int64_t until = std::numeric_limits<int64_t>::max();
    for (size_t i = 0; i < sources_.size(); ++i) {
      if (heads_[i].event == nullptr) continue;
      if (next == sources_.size() || heads_[i].ns < heads_[next].ns) {
        if (next < sources_.size()) until = std::min(until, heads_[next].ns);
        next = i;
      } else {
        until = std::min(until, heads_[i].ns);
      }
    }
    if (next == sources_.size()) break;
    if (!WriteRun(next, until)) break;
  }
  for (const auto& source : sources_) {
    if (!source->status().ok()) return source->status();
  }
  *lines_ += counts_.events == 0 ? "[\n\n]\n" : "\n]\n";
  return counts_;
}

}  // namespace

Result<MergeCounts> MergeTraces(const std::vector<std::unique_ptr<TraceSource>>& sources,
                                std::string* lines, const std::function<bool()>& written) {
  if (sources.empty() || sources.size() > kMostMergedTraces)
    return InvalidArgument(Format("from 1 to {} traces can be merged at a time, not {}",
                                  kMostMergedTraces, sources.size()));
  return Merge(sources, lines, written).Run();
}

}  // namespace hvd
