// RankTroubles: troubles that ranks report (trouble.h), as events of the job. A host may report
// those of its own ranks only; others are dropped. Pure.
#ifndef HVD_LAUNCHER_DRIVER_SERVICES_RANK_TROUBLES_H_
#define HVD_LAUNCHER_DRIVER_SERVICES_RANK_TROUBLES_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "launcher/job/host_records/silent_routes.h"
#include "launcher/job/state/job_state.h"
#include "launcher/wire/plan.h"
#include "runtime/base/clock.h"
#include "runtime/net/trouble.h"

namespace hvd {

class RankTroubles {
 public:
  // A route between two hosts is broken after it was silent for `limit`.
  explicit RankTroubles(Duration limit) : silent_routes_(limit) {}

  // Handles a report of `host`; returns the event that follows at once, if any.
  std::optional<JobEvent> Handle(const Plan& plan, uint32_t host, uint64_t generation,
                                 const Trouble& trouble, TimePoint now);
  // When PopBroken may return something; TimePoint::max(): never.
  TimePoint NextTick(TimePoint now) const { return silent_routes_.NextLook(now); }
  // A route that is broken; those that were silent beside it are forgotten. `heard`: the host of
  // this rank has sent something lately.
  std::optional<SilentRoute> PopBroken(TimePoint now,
                                       const std::function<bool(uint32_t rank)>& heard);

 private:
  SilentRoutes silent_routes_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_SERVICES_RANK_TROUBLES_H_
