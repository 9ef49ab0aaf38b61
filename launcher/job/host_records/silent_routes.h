// SilentRoutes: routes between hosts on which ranks receive nothing any more, and which of them are
// broken. A host that is gone is handled elsewhere: its agent is silent, too, and the heartbeat
// detects it. A route is broken once it has been silent for as long as a host may be, while hvdrun
// still receives from both of its hosts. Pure.
#ifndef HVD_LAUNCHER_JOB_HOST_RECORDS_SILENT_ROUTES_H_
#define HVD_LAUNCHER_JOB_HOST_RECORDS_SILENT_ROUTES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/net/trouble.h"

namespace hvd {

// `rank` has received nothing from the host of `peer` for `silent`.
struct SilentRoute {
  uint32_t rank = 0, peer = 0;
  uint64_t generation = 0;
  Duration silent{};
};

class SilentRoutes {
 public:
  explicit SilentRoutes(Duration limit) : limit_(limit) {}

  void Note(const RankSilent& silent, uint64_t generation, TimePoint now);
  // The route that has been silent longest, if that is too long. `heard`: hvdrun receives from the
  // host of this rank right now.
  std::optional<SilentRoute> Broken(TimePoint now,
                                    const std::function<bool(uint32_t rank)>& heard) const;
  // When Broken may have another answer; TimePoint::max() while no route is silent.
  TimePoint NextLook(TimePoint now) const;
  void Clear() { since_.clear(); }

 private:
  struct Since {
    uint64_t generation = 0;
    TimePoint heard_last{};
  };
  const Duration limit_;
  std::map<std::pair<uint32_t, uint32_t>, Since> since_;  // rank and peer
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_HOST_RECORDS_SILENT_ROUTES_H_
