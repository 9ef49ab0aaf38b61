// StepCounter: counts a rank's training steps from its records, in order. Pure; accepts any
// records.
//
// A step is a mark of an optimizer. In a program that has none it is one more end of a collective:
// of those that come back, the one with most bytes.
#ifndef HVD_RUNTIME_TRACE_STEP_COUNTER_H_
#define HVD_RUNTIME_TRACE_STEP_COUNTER_H_

#include <cstdint>
#include <unordered_map>

#include "runtime/trace/ring.h"

namespace hvd {

class StepCounter {
 public:
  void Add(const TraceRecord& record);
  // A new generation: later records use ids for other names.
  void BeginRing();

  uint64_t steps() const { return before_ + (marks_ > 0 ? marks_ : rounds_); }

 private:
  struct NameUse {
    uint64_t times = 0, bytes = 0;
  };

  uint64_t before_ = 0;  // in earlier rings
  uint64_t marks_ = 0, rounds_ = 0;
  uint64_t largest_bytes_ = 0;  // of those that came back
  std::unordered_map<uint32_t, NameUse> uses_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_TRACE_STEP_COUNTER_H_
