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
  // Operations up to this size together travel as one. 0: none do.
  uint64_t fusion_bytes = 64 << 20;
  SumCut cut;
  Duration stall_warning = std::chrono::seconds(60);  // 0: never
  // After this time the leaders receive the ranks that they wait for. 0: never.
  Duration tell_awaited = std::chrono::seconds(30);
  // What counts more than the two above in a job that is tuned; null in others. Outlives this.
  const TunedSettings* tuned = nullptr;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_COORDINATOR_OPTIONS_H_
