// A host of a job with its number of slots and the user's connection options.
#ifndef HVD_DISCOVERY_HOST_SLOTS_H_
#define HVD_DISCOVERY_HOST_SLOTS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace hvd {

struct HostSlots {
  std::string host;
  uint32_t slots = 0;
  std::string user = {};                   // "": not given
  uint16_t port = 0;                       // of ssh; 0: not given
  std::optional<uint32_t> max_slots = {};  // not given: equal to `slots`
  bool remote = false;                     // not this machine
  bool slots_known = true;  // false: its agent reports them; until then `slots` is the minimum

  bool operator==(const HostSlots&) const = default;
};

}  // namespace hvd

#endif  // HVD_DISCOVERY_HOST_SLOTS_H_
