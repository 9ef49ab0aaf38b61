// MakeReport: what limits a job, from the facts of its trace. Pure.
#ifndef HVD_TIMELINE_REPORT_ANALYSIS_H_
#define HVD_TIMELINE_REPORT_ANALYSIS_H_

#include <string>

#include "timeline/report/report.h"
#include "timeline/report/trace_facts.h"

namespace hvd {

// `path` is the name of the trace in the report.
Report MakeReport(const TraceFacts& facts, const std::string& path);

}  // namespace hvd

#endif  // HVD_TIMELINE_REPORT_ANALYSIS_H_
