// The offset of a host's clock from the timeline's clock.
#ifndef HVD_LAUNCHER_LIVE_HOST_OFFSET_H_
#define HVD_LAUNCHER_LIVE_HOST_OFFSET_H_

#include <cstdint>
#include <optional>
#include <string>

#include "launcher/job/host_records/host_clock.h"

namespace hvd {

// Keeps the offset while it changes little, so that the order of the host's events is preserved.
// Pure.
class HostOffset {
 public:
  // The offset to add to the host's stamps of about this time; nothing while the host's clock is
  // unknown.
  std::optional<int64_t> At(const HostClock& clock, int64_t stamp_ns);
  int64_t uncertainty_ns() const { return uncertainty_ns_; }

 private:
  std::optional<int64_t> offset_ns_;
  int64_t uncertainty_ns_ = 0;
};

// The stamp of the first event among these bytes of records; 0: none.
int64_t FirstStampIn(const std::string& records);

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_HOST_OFFSET_H_
