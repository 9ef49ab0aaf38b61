// Merges several traces onto one clock: timelines of hvdrun and traces of PyTorch's profiler.
#ifndef HVD_TIMELINE_CONVERT_TRACE_MERGE_H_
#define HVD_TIMELINE_CONVERT_TRACE_MERGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "timeline/read/trace_source.h"

namespace hvd {

struct MergeCounts {
  uint64_t events = 0;  // written
  uint64_t files = 0;
};

// Writes an array of events, one per line, sorted by time if each source is. Time zero is that of
// the earliest timeline, or the first event without timelines. Processes of a timeline keep their
// ids; those of profilers and of timelines with equal ids get new ones. Memory: one block per
// source.
//
// `lines` is the buffer to append to; `written` is called after each line, false: stop. Not ok: a
// source cannot be read or its clock is unknown.
Result<MergeCounts> MergeTraces(const std::vector<std::unique_ptr<TraceSource>>& sources,
                                std::string* lines, const std::function<bool()>& written);

// Maximum number of sources: each has a range of ten million process ids.
inline constexpr size_t kMostMergedTraces = 200;

}  // namespace hvd

#endif  // HVD_TIMELINE_CONVERT_TRACE_MERGE_H_
