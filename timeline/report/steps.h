// Steps of a rank: rounds of its recurring tensors. Pure.
#ifndef HVD_TIMELINE_REPORT_STEPS_H_
#define HVD_TIMELINE_REPORT_STEPS_H_

#include <cstddef>
#include <vector>

#include "timeline/report/trace_facts.h"

namespace hvd {

struct Steps {
  // Places in RankHistory::operations: each begins a step; the last one only ends the one before.
  std::vector<size_t> begins;
  size_t tensors = 0;  // of one step
};

// Most recurring names occur once per step, so their count is the number of steps; the one
// submitted first begins each step. Without recurring names there are no steps.
Steps FindSteps(const RankHistory& rank);

}  // namespace hvd

#endif  // HVD_TIMELINE_REPORT_STEPS_H_
