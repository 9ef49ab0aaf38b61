// What all host sources need from the rest of hvdrun.
#ifndef HVD_LAUNCHER_ELASTIC_HOSTS_WATCH_PARTS_H_
#define HVD_LAUNCHER_ELASTIC_HOSTS_WATCH_PARTS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "launcher/elastic_hosts/own_names.h"

namespace hvd {

struct WatchParts {
  OwnNamesAmong own_names;
  // Slots of a host named without a number; 0: its agent reports them.
  std::function<uint32_t(bool remote)> default_slots;
  // Logs a sentence. Called from the io_context.
  std::function<void(const std::string&)> note = [](const std::string&) {};
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_ELASTIC_HOSTS_WATCH_PARTS_H_
