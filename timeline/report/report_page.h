// A report as one HTML page that needs nothing else. Pure.
#ifndef HVD_TIMELINE_REPORT_REPORT_PAGE_H_
#define HVD_TIMELINE_REPORT_REPORT_PAGE_H_

#include <string>

#include "timeline/report/report.h"

namespace hvd {

// page.html with the report as JSON in it. Whatever a name has in it stays a text.
std::string ReportPage(const Report& report);

}  // namespace hvd

#endif  // HVD_TIMELINE_REPORT_REPORT_PAGE_H_
