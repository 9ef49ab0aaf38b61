// A report as JSON: an object whose members have their units in their names. Pure.
#ifndef HVD_TIMELINE_REPORT_REPORT_JSON_H_
#define HVD_TIMELINE_REPORT_REPORT_JSON_H_

#include <string>

#include "timeline/report/report.h"

namespace hvd {

// `indent`: spaces; -1: all in one line. With the steps of each rank, at most `most_steps` of them,
// each standing for the ones around it.
std::string ReportJson(const Report& report, int indent, size_t most_steps);

}  // namespace hvd

#endif  // HVD_TIMELINE_REPORT_REPORT_JSON_H_
