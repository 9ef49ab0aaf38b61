// The treatment of ways between hosts on which no address works: a relay through hvdrun's own
// machine, or the end of the job before it starts; and the words for the user. Pure.
#ifndef HVD_LAUNCHER_OVERLAY_RELAY_RELAY_PLAN_H_
#define HVD_LAUNCHER_OVERLAY_RELAY_RELAY_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "launcher/wire/messages.h"

namespace hvd {

// Host `from` cannot connect to host `to`. The other direction is another way.
struct BlockedRoute {
  uint32_t from = 0, to = 0;
  std::string why;      // "it cannot reach hvd2 (10.0.0.2:4711: Connection refused); look for ..."
  RelayMeasured speed;  // once measured
  bool measured = false;
};

// Empty: blocked ways are relayed.
std::string WhyNotRelayed(bool allowed, size_t hosts);

// Why `host` cannot be used, for the report on all hosts. `why_not`: as above.
std::string TroubleOfBlocked(const std::vector<BlockedRoute>& routes, uint32_t host,
                             const std::string& why_not);

// The one warning, once every way is measured. `names`: by host, of which so many are in use.
std::string RelayWarning(const std::vector<BlockedRoute>& routes,
                         const std::vector<std::string>& names, size_t hosts);

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_RELAY_RELAY_PLAN_H_
