// A host of a job and how many processes it may run.
#ifndef HVD_DISCOVERY_HOST_SLOTS_H_
#define HVD_DISCOVERY_HOST_SLOTS_H_

#include <cstdint>
#include <string>

namespace hvd {

struct HostSlots {
  std::string host;
  uint32_t slots = 0;
  std::string user = {};  // "": not said
  uint16_t port = 0;      // of ssh; 0: not said
  bool remote = false;    // not this machine

  bool operator==(const HostSlots&) const = default;
};

}  // namespace hvd

#endif  // HVD_DISCOVERY_HOST_SLOTS_H_
