// Options of a Coordinator and its parts.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_COORDINATOR_OPTIONS_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_COORDINATOR_OPTIONS_H_

#include <chrono>
#include <cstdint>

#include "runtime/backends/sum_cut.h"
#include "runtime/base/clock.h"
#include "runtime/segment/tuned_settings.h"

namespace hvd {

struct CoordinatorOptions {
  // Operations up to this total size are fused. 0: none.
  uint64_t fusion_bytes = 64 << 20;
  SumCut cut;
  Duration stall_warning = std::chrono::seconds(60);  // 0: never
  // After this time leaders are sent the ranks that they wait for. 0: never.
  Duration report_awaited_after = std::chrono::seconds(30);
  // Overrides fusion_bytes and cut.stripes in a tuned job; null in others. Outlives this.
  const TunedSettings* tuned = nullptr;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_COORDINATOR_OPTIONS_H_
