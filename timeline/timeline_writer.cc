#include "timeline/timeline_writer.h"

#include <utility>

#include "timeline/chrome_text.h"

namespace hvd {
namespace {

// Rows beyond these share the last one.
constexpr uint32_t kMostRows = 20000;

std::string Number(const char* key, int64_t value) {
  return '"' + std::string(key) + "\":" + std::to_string(value);
}

std::string Text(const char* key, std::string_view value) {
  return '"' + std::string(key) + "\":" + JsonText(value);
}

}  // namespace

Result<std::unique_ptr<TimelineWriter>> TimelineWriter::Create(const TimelineOptions& options) {
  auto file = TraceFile::Create(options.path, options.most_bytes);
  if (!file.ok()) return file.status();
  std::unique_ptr<TimelineWriter> writer(new TimelineWriter(options, std::move(*file)));
  if (Status begun = writer->Flush(); !begun.ok()) return begun;
  return writer;
}

TimelineWriter::TimelineWriter(const TimelineOptions& options, std::unique_ptr<TraceFile> file)
    : begun_ns_(options.begun_ns), file_(std::move(file)) {
  sink_.event = [this](const TimelineEvent& event) { Event(event); };
  sink_.submission = [this](const Submission& submission) { Arrived(submission); };
  Add(MetadataLine(
      "process_name", 0, 0,
      Text("name", "rank 0") + "," + Number("start_time_since_epoch_in_micros", options.wall_us)));
  Add(MetadataLine("process_sort_index", 0, 0, Number("sort_index", 0)));
}

void TimelineWriter::Add(const std::string& line) {
  if (!failure_.ok() || finished_) {
    ++not_written_;
    return;
  }
  if (Status added = file_->Add(line); !added.ok()) {
    ++not_written_;
    if (added.code() != Code::kInvalidArgument) failure_ = std::move(added);
  }
}

RankEvents& TimelineWriter::EventsOf(uint32_t rank) {
  return ranks_.try_emplace(rank, rank).first->second;
}

void TimelineWriter::BeginRank(uint32_t rank, std::string_view host, uint64_t generation,
                               int64_t now_ns) {
  EndRank(rank);
  if (shown_.insert(rank).second) {
    const std::string name = "rank " + std::to_string(rank) + " on " + std::string(host);
    Add(MetadataLine("process_name", rank, 0, Text("name", name)));
    Add(MetadataLine("process_sort_index", rank, 0, Number("sort_index", rank)));
    Add(MetadataLine("thread_name", rank, 0, Text("name", "waits of the application")));
  }
  Event({TimelineEvent::Phase::kMark, now_ns, rank, "", "GENERATION",
         Number("generation", static_cast<int64_t>(generation)) + "," + Text("host", host)});
}

void TimelineWriter::NoteClock(uint32_t rank, std::string_view host, int64_t offset_ns,
                               int64_t uncertainty_ns) {
  Add(MetadataLine("clock", rank, 0,
                   Text("host", host) + "," + Number("offset_ns", offset_ns) + "," +
                       Number("uncertainty_ns", uncertainty_ns)));
}

void TimelineWriter::Take(uint32_t rank, std::span<const TraceRecord> records, uint64_t lost) {
  EventsOf(rank).Take(records, lost, sink_);
}

void TimelineWriter::EndRank(uint32_t rank) {
  if (auto found = ranks_.find(rank); found != ranks_.end()) found->second.Close(sink_);
  arrivals_.Forget(rank);
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
  shifted.ns -= begun_ns_;
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
  if (failure_.ok() || std::exchange(failure_told_, true)) return Status::Ok();
  return failure_;
}

void TimelineWriter::Finish() {
  if (finished_) return;
  for (auto& [rank, events] : ranks_) events.Close(sink_);
  finished_ = true;
  uint64_t overwritten = 0;
  for (const auto& [rank, events] : ranks_) overwritten += events.lost();
  (void)file_->Finish(MetadataLine("events_lost", 0, 0,
                                   Number("overwritten", static_cast<int64_t>(overwritten)) + "," +
                                       Number("not_written", static_cast<int64_t>(not_written_))));
}

}  // namespace hvd
