// SilentRoutes: ways between hosts on which ranks hear nothing any more, and which of them are
// broken. A host that is gone is none of them: its agent is silent, too, and the heartbeat decides
// about it. Broken is a way between two hosts that hvdrun hears both, once it has been silent for
// as long as a host may be. Pure.
#ifndef HVD_LAUNCHER_DRIVER_SILENT_ROUTES_H_
#define HVD_LAUNCHER_DRIVER_SILENT_ROUTES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/net/trouble.h"

namespace hvd {

// `rank` has heard nothing of the host of `peer` for so long.
struct SilentRoute {
  uint32_t rank = 0, peer = 0;
  uint64_t generation = 0;
  Duration silent{};
};

class SilentRoutes {
 public:
  explicit SilentRoutes(Duration limit) : limit_(limit) {}

  void Note(const RankSilent& said, uint64_t generation, TimePoint now);
  // The way that has been silent longest, if that is too long. `heard`: hvdrun hears the host of
  // this rank right now.
  std::optional<SilentRoute> Broken(TimePoint now,
                                    const std::function<bool(uint32_t rank)>& heard) const;
  // When Broken may have another answer; never while no way is silent.
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

#endif  // HVD_LAUNCHER_DRIVER_SILENT_ROUTES_H_
