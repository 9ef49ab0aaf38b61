// A host of a job, how many processes it may run, and how the user said to reach it.
#ifndef HVD_DISCOVERY_HOST_SLOTS_H_
#define HVD_DISCOVERY_HOST_SLOTS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace hvd {

struct HostSlots {
  std::string host;
  uint32_t slots = 0;
  std::string user = {};                   // "": not said
  uint16_t port = 0;                       // of ssh; 0: not said
  std::optional<uint32_t> max_slots = {};  // not said: as many as there are slots
  bool remote = false;                     // not this machine
  bool slots_told = true;  // false: its agent says how many; until then `slots` is the least

  bool operator==(const HostSlots&) const = default;
};

}  // namespace hvd

#endif  // HVD_DISCOVERY_HOST_SLOTS_H_
