// A report as text, JSON and HTML. Pure.
#ifndef HVD_TIMELINE_REPORT_REPORT_OUTPUT_H_
#define HVD_TIMELINE_REPORT_REPORT_OUTPUT_H_

#include <cstddef>
#include <string>

#include "timeline/report/report.h"

namespace hvd {

// For a terminal: the limits of the job first, then tables. Ends with a newline.
std::string ReportText(const Report& report);

// An object whose members have their units in their names. `indent`: spaces; -1: all in one line.
// Has at most `most_steps` steps per rank, each representing its neighbours.
std::string ReportJson(const Report& report, int indent, size_t most_steps);

// A self-contained page: page.html with the report as JSON. Names are escaped.
std::string ReportPage(const Report& report);

}  // namespace hvd

#endif  // HVD_TIMELINE_REPORT_REPORT_OUTPUT_H_
