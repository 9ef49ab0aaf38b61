// A report as a self-contained HTML page. Pure.
#ifndef HVD_TIMELINE_REPORT_REPORT_PAGE_H_
#define HVD_TIMELINE_REPORT_REPORT_PAGE_H_

#include <string>

#include "timeline/report/report.h"

namespace hvd {

// page.html with the report as JSON. Names are escaped.
std::string ReportPage(const Report& report);

}  // namespace hvd

#endif  // HVD_TIMELINE_REPORT_REPORT_PAGE_H_
