// Steps of a rank: rounds of the tensors that keep coming back. Pure.
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

// Most names that come back do so once in a step: how often they do is how many steps there are.
// The one of them that is submitted first begins each step. Without such names there are no steps.
Steps FindSteps(const RankHistory& rank);

}  // namespace hvd

#endif  // HVD_TIMELINE_REPORT_STEPS_H_
