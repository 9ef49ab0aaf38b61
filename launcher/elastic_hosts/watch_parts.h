// The parts that all sources of hosts need from the rest of hvdrun.
#ifndef HVD_LAUNCHER_ELASTIC_HOSTS_WATCH_PARTS_H_
#define HVD_LAUNCHER_ELASTIC_HOSTS_WATCH_PARTS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "launcher/elastic_hosts/own_names.h"

namespace hvd {

struct WatchParts {
  OwnNamesAmong own_names;
  // Of a host that is named without a number; 0: its agent says how many.
  std::function<uint32_t(bool remote)> default_slots;
  // A sentence for the log. Called by the io_context.
  std::function<void(const std::string&)> note = [](const std::string&) {};
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_ELASTIC_HOSTS_WATCH_PARTS_H_
