// A report as JSON: an object whose members have their units in their names. Pure.
#ifndef HVD_TIMELINE_REPORT_REPORT_JSON_H_
#define HVD_TIMELINE_REPORT_REPORT_JSON_H_

#include <string>

#include "timeline/report/report.h"

namespace hvd {

// `indent`: spaces; -1: all in one line. Has at most `most_steps` steps per rank, each representing
// its neighbours.
std::string ReportJson(const Report& report, int indent, size_t most_steps);

}  // namespace hvd

#endif  // HVD_TIMELINE_REPORT_REPORT_JSON_H_
