// The settings for the network between the hosts of a job. Pure.
#ifndef HVD_LAUNCHER_DRIVER_NETWORK_SETTINGS_H_
#define HVD_LAUNCHER_DRIVER_NETWORK_SETTINGS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "configs/settings.h"
#include "launcher/job/host_records/host_stages.h"
#include "runtime/base/status.h"

namespace hvd {

struct PortRange {
  uint16_t first = 0, last = 0;  // both 0: any
};
// "40000-40999", "40000", "".
Result<PortRange> ParsePortRange(std::string_view text);

struct NetworkSettings {
  StageLimits stage_limits = StageLimits::Default();
  std::vector<std::string> interfaces;  // empty: all
  PortRange ports;
};
// kInvalidArgument: one sentence that names the option. `hosts_come_late`: their names may
// become known, and their servers start, later, as those of pods do; otherwise an unknown name is
// taken for a misspelt one.
Result<NetworkSettings> ReadNetwork(const Settings& settings, bool hosts_come_late);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_NETWORK_SETTINGS_H_
