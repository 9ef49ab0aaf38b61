// What to do about blocked routes between hosts: relay through hvdrun's own machine, or end the job
// before it starts; and the messages for the user. Pure.
#ifndef HVD_LAUNCHER_OVERLAY_RELAY_RELAY_PLAN_H_
#define HVD_LAUNCHER_OVERLAY_RELAY_RELAY_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "launcher/wire/messages.h"

namespace hvd {

// Host `from` cannot connect to host `to`. The opposite direction is a separate route.
struct BlockedRoute {
  uint32_t from = 0, to = 0;
  std::string why;      // "it cannot reach hvd2 (10.0.0.2:4711: Connection refused); look for ..."
  RelayMeasured speed;  // once measured
  bool measured = false;
};

// Empty: blocked routes are relayed.
std::string ReasonNotRelayed(bool allowed, size_t hosts);

// Why `host` cannot be used, for the report on all hosts. `reason`: result of ReasonNotRelayed.
std::string TroubleOfBlocked(const std::vector<BlockedRoute>& routes, uint32_t host,
                             const std::string& reason);

// The single warning, after all routes have been measured. `names`: by host; `hosts`: number in
// use.
std::string RelayWarning(const std::vector<BlockedRoute>& routes,
                         const std::vector<std::string>& names, size_t hosts);

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_RELAY_RELAY_PLAN_H_
