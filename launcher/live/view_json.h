// A JobView as one line of JSON, between the driver and `hvdrun top`, and for programs. Pure.
#ifndef HVD_LAUNCHER_LIVE_VIEW_JSON_H_
#define HVD_LAUNCHER_LIVE_VIEW_JSON_H_

#include <string>
#include <string_view>

#include "launcher/live/job_view.h"
#include "runtime/base/status.h"

namespace hvd {

// Without a line end.
std::string ViewJson(const JobView& view);
// kInvalidArgument for anything else.
Result<JobView> ParseViewJson(std::string_view line);

// One ring in the answer to a dump: this line, then `bytes` of its records. A line with `end` is
// the last one.
struct RingHead {
  uint32_t rank = 0;
  std::string host;
  uint64_t generation = 0;
  // Add to stamps for the clock of the driver's host; and the error bound of that.
  int64_t offset_ns = 0, uncertainty_ns = 0;
  uint64_t bytes = 0;
  bool end = false;
  std::string trouble;  // what is missing and why; empty: complete

  static constexpr uint64_t kMostBytes = 64 << 20;
};
std::string RingHeadJson(const RingHead& head);
Result<RingHead> ParseRingHead(std::string_view line);

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_VIEW_JSON_H_
