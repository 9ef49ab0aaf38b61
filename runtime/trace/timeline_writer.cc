#include "runtime/trace/timeline_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "runtime/base/text/format.h"
#include "runtime/trace/chrome_text.h"

namespace hvd {
namespace {

// Further rows share the last one.
constexpr uint32_t kMostRows = 20000;
// Room for a batch of a thousand records.
constexpr uint64_t kRoomForABatch = 512 << 10;
// A rank whose records are older than those of others by more than this has ended.
constexpr int64_t kSilentNs = 5'000'000'000;

std::string Number(const char* key, int64_t value) { return Format("\"{}\":{}", key, value); }

std::string Text(const char* key, std::string_view value) {
  return '"' + std::string(key) + "\":" + JsonText(value);
}

uint64_t LimitOf(const TimelineOptions& options) {
  return options.keep_last ? options.most_bytes / 2 : options.most_bytes;
}

}  // namespace

Result<std::unique_ptr<TimelineWriter>> TimelineWriter::Create(const TimelineOptions& options) {
  auto file = TraceFile::Create(options.path, LimitOf(options));
  if (!file.ok()) return file.status();
  std::unique_ptr<TimelineWriter> writer(new TimelineWriter(options, std::move(*file)));
  HVD_RETURN_IF_ERROR(writer->Flush());
  return writer;
}

TimelineWriter::TimelineWriter(const TimelineOptions& options, std::unique_ptr<TraceFile> file)
    : options_(options), file_(std::move(file)) {
  sink_.event = [this](const TimelineEvent& event) { Event(event); };
  sink_.submission = [this](const Submission& submission) { Arrived(submission); };
  Begin();
}

void TimelineWriter::Begin() {
  Add(MetadataLine(
      "process_name", 0, 0,
      Text("name", "rank 0") + "," + Number("start_time_since_epoch_in_micros", options_.wall_us)));
  Add(MetadataLine("process_sort_index", 0, 0, Number("sort_index", 0)));
}

// Between two batches of records: nothing that is open continues in another file.
void TimelineWriter::Rotate() {
  for (auto& [rank, events] : ranks_) events.EndAll(sink_);
  (void)file_->Finish(LastLine());
  const std::string before = options_.path + ".1";
  if (std::rename(options_.path.c_str(), before.c_str()) != 0) {
    failure_ = SystemError("the timeline " + options_.path + " cannot become " + before, errno);
    return;
  }
  auto file = TraceFile::Create(options_.path, LimitOf(options_));
  if (!file.ok()) {
    failure_ = file.status();
    return;
  }
  file_ = std::move(*file);
  named_.clear();
  for (auto& [rank, steps] : steps_) steps.before_file = steps.counter.steps();
  Begin();
  for (const auto& [rank, host] : hosts_) NameRank(rank);
}

void TimelineWriter::Add(const std::string& line) {
  if (!failure_.ok() || finished_) {
    ++not_written_;
    return;
  }
  if (Status added = file_->Add(line); !added.ok()) {
    ++not_written_;
    const bool full = options_.keep_last && added.code() == Code::kUnsupported;
    if (added.code() != Code::kInvalidArgument && !full) failure_ = std::move(added);
  }
}

RankEvents& TimelineWriter::EventsOf(uint32_t rank) {
  return ranks_.try_emplace(rank, rank).first->second;
}

void TimelineWriter::BeginRank(uint32_t rank, std::string_view host, uint64_t generation,
                               int64_t now_ns) {
  if (auto found = ranks_.find(rank); found != ranks_.end()) found->second.Close(sink_);
  arrivals_.BeginRank(rank, generation);
  steps_[rank].counter.BeginRing();
  steps_[rank].newest_ns = std::max(steps_[rank].newest_ns, now_ns);
  if (hosts_.try_emplace(rank, host).second) NameRank(rank);
  Event({TimelineEvent::Phase::kMark, now_ns, rank, "", "GENERATION",
         Number("generation", static_cast<int64_t>(generation)) + "," + Text("host", host)});
}

void TimelineWriter::NameRank(uint32_t rank) {
  const std::string name = Format("rank {} on {}", rank, hosts_[rank]);
  Add(MetadataLine("process_name", rank, 0, Text("name", name)));
  Add(MetadataLine("process_sort_index", rank, 0, Number("sort_index", rank)));
  Add(MetadataLine("thread_name", rank, 0, Text("name", "waits of the application")));
}

void TimelineWriter::NoteClock(uint32_t rank, std::string_view host, int64_t offset_ns,
                               int64_t uncertainty_ns) {
  Add(MetadataLine("clock", rank, 0,
                   Text("host", host) + "," + Number("offset_ns", offset_ns) + "," +
                       Number("uncertainty_ns", uncertainty_ns)));
}

// How many of the records belong to the requested steps: up to the end of the last one.
size_t TimelineWriter::WithinSteps(uint32_t rank, std::span<const TraceRecord> records) {
  RankSteps& steps = steps_[rank];
  const bool first_only = options_.most_steps != 0 && !options_.keep_last;
  if (steps.over) return 0;
  for (size_t i = 0; i < records.size(); ++i) {
    steps.counter.Add(records[i]);
    if (records[i].kind != TraceKind::kName)
      steps.newest_ns = std::max(steps.newest_ns, static_cast<int64_t>(records[i].stamp));
    steps.over = first_only && steps.counter.steps() >= options_.most_steps;
    if (steps.over) return i + 1;
  }
  return records.size();
}

// The file has all requested steps of each rank, except ranks that send nothing more.
bool TimelineWriter::HasAllSteps() const {
  int64_t newest_ns = 0;
  for (const auto& [rank, steps] : steps_) newest_ns = std::max(newest_ns, steps.newest_ns);
  return std::ranges::all_of(steps_, [&](const auto& entry) {
    const RankSteps& steps = entry.second;
    return steps.newest_ns < newest_ns - kSilentNs ||
           steps.counter.steps() - steps.before_file >= options_.most_steps;
  });
}

void TimelineWriter::Add(uint32_t rank, std::span<const TraceRecord> records, uint64_t lost) {
  const bool was_over = steps_[rank].over;
  const size_t within = WithinSteps(rank, records);
  not_written_ += records.size() - within;
  if (!was_over) AddPart(rank, records.first(within), lost);
  if (!was_over && steps_[rank].over) EventsOf(rank).EndAll(sink_);
  if (options_.keep_last && options_.most_steps != 0 && failure_.ok() && HasAllSteps()) Rotate();
}

void TimelineWriter::AddPart(uint32_t rank, std::span<const TraceRecord> records, uint64_t lost) {
  // The events of one batch fit into the rest.
  const uint64_t limit = LimitOf(options_);
  if (options_.keep_last && limit != 0 && failure_.ok() &&
      file_->bytes() + std::min(limit / 4, kRoomForABatch) > limit)
    Rotate();
  EventsOf(rank).Add(records, lost, sink_);
}

uint32_t TimelineWriter::RowOf(uint32_t rank, std::string_view name) {
  if (name.empty()) return 0;
  uint32_t row = kMostRows;
  auto found = rows_.find(std::string(name));
  if (found != rows_.end()) {
    row = found->second;
  } else if (rows_.size() + 1 < kMostRows) {
    row = static_cast<uint32_t>(rows_.size()) + 1;
    rows_.emplace(name, row);
  }
  if (named_[rank].insert(row).second) {
    const std::string_view shown = row == kMostRows ? "other tensors" : name;
    Add(MetadataLine("thread_name", rank, row, Text("name", shown)));
    Add(MetadataLine("thread_sort_index", rank, row, Number("sort_index", row)));
  }
  return row;
}

void TimelineWriter::Event(const TimelineEvent& event) {
  const uint32_t row = RowOf(event.rank, event.row);
  TimelineEvent shifted = event;
  shifted.ns -= options_.begun_ns;
  Add(EventLine(shifted, row));
}

void TimelineWriter::Arrived(const Submission& submission) {
  const auto last = arrivals_.Note(submission);
  if (!last) return;
  Event({TimelineEvent::Phase::kMark, last->ns, last->rank, submission.name, "LAST_TO_ARRIVE",
         Number("rank", last->rank) + "," + Number("late_ns", last->late_ns) + "," +
             Number("first_waited_ns", last->first_waited_ns)});
}

Status TimelineWriter::Flush() {
  if (failure_.ok() && !finished_) failure_ = file_->Flush();
  if (failure_.ok() || std::exchange(failure_reported_, true)) return Status::Ok();
  return failure_;
}

void TimelineWriter::Finish() {
  if (finished_) return;
  for (auto& [rank, events] : ranks_) events.Close(sink_);
  finished_ = true;
  (void)file_->Finish(LastLine());
}

std::string TimelineWriter::LastLine() const {
  uint64_t overwritten = 0;
  for (const auto& [rank, events] : ranks_) overwritten += events.lost();
  return MetadataLine("events_lost", 0, 0,
                      Number("overwritten", static_cast<int64_t>(overwritten)) + "," +
                          Number("not_written", static_cast<int64_t>(not_written_)));
}

}  // namespace hvd
