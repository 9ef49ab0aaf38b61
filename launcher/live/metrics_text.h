// A JobView in the text format of Prometheus, version 0.0.4. Pure.
#ifndef HVD_LAUNCHER_LIVE_METRICS_TEXT_H_
#define HVD_LAUNCHER_LIVE_METRICS_TEXT_H_

#include <string>

#include "launcher/live/job_view.h"

namespace hvd {

inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

std::string MetricsText(const JobView& view);

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_METRICS_TEXT_H_
