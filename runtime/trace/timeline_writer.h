// TimelineWriter: writes the records of all ranks of a job to a file in Chrome's trace format
// (FORMAT.md).
//
// One thread at a time.
#ifndef HVD_RUNTIME_TRACE_TIMELINE_WRITER_H_
#define HVD_RUNTIME_TRACE_TIMELINE_WRITER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/trace/last_arrivals.h"
#include "runtime/trace/rank_events.h"
#include "runtime/trace/ring.h"
#include "runtime/trace/step_counter.h"
#include "runtime/trace/trace_file.h"

namespace hvd {

struct TimelineOptions {
  std::string path;
  int64_t begun_ns = 0;     // the zero of the file, by the clock of all records
  int64_t wall_us = 0;      // the same moment, since 1970
  uint64_t most_bytes = 0;  // of the file; 0: no limit
  // At half of that, the file becomes PATH.1 and a new one begins; otherwise later events are
  // counted only.
  bool keep_last = false;
  // Of the job; 0: no limit. The first ones alone are written; with keep_last the file becomes
  // PATH.1 after so many, so that both have at least the last ones.
  uint64_t most_steps = 0;
};

class TimelineWriter {
 public:
  // The error is a sentence about the path.
  static Result<std::unique_ptr<TimelineWriter>> Create(const TimelineOptions& options);
  ~TimelineWriter() { Finish(); }

  // The rank is in this generation from now on. Ends its open events.
  void BeginRank(uint32_t rank, std::string_view host, uint64_t generation, int64_t now_ns);
  // Stamps of the rank are off from the clock of the file by this much at most.
  void NoteClock(uint32_t rank, std::string_view host, int64_t offset_ns, int64_t uncertainty_ns);
  // Records whose stamps are nanoseconds of the file's clock; `lost`: missing before them.
  void Add(uint32_t rank, std::span<const TraceRecord> records, uint64_t lost);

  // Writes all events to the file. Not ok, once: why no more events will be written; later events
  // are only counted.
  Status Flush();
  // The file is complete; the count of the events that are not in it is.
  void Finish();

  const std::string& path() const { return file_->path(); }

 private:
  TimelineWriter(const TimelineOptions& options, std::unique_ptr<TraceFile> file);
  void Begin();
  void Rotate();
  void Add(const std::string& line);
  void NameRank(uint32_t rank);
  std::string LastLine() const;
  void Event(const TimelineEvent& event);
  void Arrived(const Submission& submission);
  uint32_t RowOf(uint32_t rank, std::string_view name);
  RankEvents& EventsOf(uint32_t rank);
  // How many of these records of the rank are to be written.
  size_t WithinSteps(uint32_t rank, std::span<const TraceRecord> records);
  bool HasAllSteps() const;
  void AddPart(uint32_t rank, std::span<const TraceRecord> records, uint64_t lost);

  const TimelineOptions options_;
  std::unique_ptr<TraceFile> file_;
  TimelineSink sink_;
  std::map<uint32_t, RankEvents> ranks_;
  std::map<uint32_t, std::string> hosts_;                   // of ranks
  std::unordered_map<std::string, uint32_t> rows_;          // the same in all ranks, from 1
  std::map<uint32_t, std::unordered_set<uint32_t>> named_;  // rows that have a name, by rank
  struct RankSteps {
    StepCounter counter;
    uint64_t before_file = 0;  // when the file began
    bool over = false;         // it has made all that are kept
    int64_t newest_ns = 0;     // of its records
  };
  std::map<uint32_t, RankSteps> steps_;
  LastArrivals arrivals_;
  Status failure_;
  bool failure_reported_ = false, finished_ = false;
  uint64_t not_written_ = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_TRACE_TIMELINE_WRITER_H_
