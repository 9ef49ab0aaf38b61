#include <string_view>

#include "timeline/page/page.h"
#include "timeline/report/report_output.h"

namespace hvd {
namespace {

constexpr std::string_view kPage =
#include "page.inc"
    ;
constexpr size_t kMostSteps = 400;

}  // namespace

std::string ReportPage(const Report& report) {
  return FillPage(kPage, ReportJson(report, -1, kMostSteps));
}

}  // namespace hvd
