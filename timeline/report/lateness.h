// Which ranks delay the others, where, and for what share of the time. Pure.
#ifndef HVD_TIMELINE_REPORT_LATENESS_H_
#define HVD_TIMELINE_REPORT_LATENESS_H_

#include "timeline/report/report.h"
#include "timeline/report/trace_facts.h"

namespace hvd {

// Fills last_share and lost_by_others_ns of the ranks, and the straggler: the rank for which the
// others wait longest within `range`. A rank waits for another one while its program waits for a
// result and that one is the last that has not submitted some tensor.
void AddLateness(const TraceFacts& facts, const TimeRange& range, Report* report);

}  // namespace hvd

#endif  // HVD_TIMELINE_REPORT_LATENESS_H_
