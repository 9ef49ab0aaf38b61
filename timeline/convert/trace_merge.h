// Several traces as one, on one clock: timelines of hvdrun and traces of PyTorch's profiler.
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

// Writes an array of events, one in a line, the events of all sources in the order of their times
// as far as each source has them in order. Its zero is the earliest of the timelines, or the first
// event where there is none. The processes of one timeline keep their numbers; those of another one
// that has the same, and of profilers, get others. Memory: one block for each source.
//
// `lines` is the buffer to append to; `written` is called after each line, false: stop, it is in
// vain. The status is about a source that cannot be read or has no known clock.
Result<MergeCounts> MergeTraces(const std::vector<std::unique_ptr<TraceSource>>& sources,
                                std::string* lines, const std::function<bool()>& written);

// The most sources at a time: each has ten million numbers of processes.
inline constexpr size_t kMostMergedTraces = 200;

}  // namespace hvd

#endif  // HVD_TIMELINE_CONVERT_TRACE_MERGE_H_
