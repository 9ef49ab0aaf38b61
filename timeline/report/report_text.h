// A report as text for a terminal. Pure.
#ifndef HVD_TIMELINE_REPORT_REPORT_TEXT_H_
#define HVD_TIMELINE_REPORT_REPORT_TEXT_H_

#include <string>

#include "timeline/report/report.h"

namespace hvd {

// The limits of the job first, then tables. Ends with a newline.
std::string ReportText(const Report& report);

}  // namespace hvd

#endif  // HVD_TIMELINE_REPORT_REPORT_TEXT_H_
