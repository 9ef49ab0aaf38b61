// Sentences on what limits a job, worst first. Pure.
#ifndef HVD_TIMELINE_REPORT_FINDINGS_H_
#define HVD_TIMELINE_REPORT_FINDINGS_H_

#include <vector>

#include "timeline/report/report.h"

namespace hvd {

std::vector<JobLimit> FindingsOf(const Report& report);

}  // namespace hvd

#endif  // HVD_TIMELINE_REPORT_FINDINGS_H_
