#include "launcher/live/host_offset.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runtime/trace/ring.h"

namespace hvd {
namespace {

// Smaller changes of the offset are ignored.
constexpr int64_t kKeptNs = 20'000;

}  // namespace

int64_t FirstStampIn(const std::string& records) {
  for (size_t at = 0; at + sizeof(TraceRecord) <= records.size(); at += sizeof(TraceRecord)) {
    TraceRecord record;
    std::memcpy(&record, records.data() + at, sizeof record);
    if (record.kind != TraceKind::kName) return static_cast<int64_t>(record.stamp);
  }
  return 0;
}

std::optional<int64_t> HostOffset::At(const HostClock& clock, int64_t stamp_ns) {
  const auto moment = clock.Convert(stamp_ns);
  if (!moment) return offset_ns_;
  const int64_t offset = moment->at.time_since_epoch().count() - stamp_ns;
  const int64_t uncertainty = moment->uncertainty.count();
  if (!offset_ns_ || std::abs(offset - *offset_ns_) > std::min(kKeptNs, uncertainty))
    offset_ns_ = offset;
  uncertainty_ns_ = uncertainty + std::abs(offset - *offset_ns_);
  return offset_ns_;
}

}  // namespace hvd
