// The meaning of the records of a rank: events of a timeline, and submissions. Plain values.
#ifndef HVD_RUNTIME_TRACE_TIMELINE_EVENT_H_
#define HVD_RUNTIME_TRACE_TIMELINE_EVENT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace hvd {

// One event of a timeline. `row` and `args` are valid during the call that hands it over.
struct TimelineEvent {
  enum class Phase : char { kBegin = 'B', kEnd = 'E', kTick = 'X', kMark = 'i' };
  Phase phase = Phase::kMark;
  int64_t ns = 0;  // of the clock that the records were given with
  uint32_t rank = 0;
  std::string_view row;   // the name of the tensor; empty: the row of the rank itself
  std::string name;       // empty for kEnd
  std::string args = {};  // members of a JSON object, without its braces
};

// A rank has submitted a tensor.
struct Submission {
  uint32_t rank = 0;
  std::string_view name;
  uint32_t round = 0;    // how often the rank had submitted the name before
  uint32_t members = 0;  // of its process set
  int64_t ns = 0;
  uint16_t set = 0;  // number of the process set, the same on all ranks
};

struct TimelineSink {
  std::function<void(const TimelineEvent&)> event;
  std::function<void(const Submission&)> submission;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_TRACE_TIMELINE_EVENT_H_
