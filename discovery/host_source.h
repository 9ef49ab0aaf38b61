// HostSource: which hosts exist now, and how many slots each has.
#ifndef HVD_DISCOVERY_HOST_SOURCE_H_
#define HVD_DISCOVERY_HOST_SOURCE_H_

#include <vector>

#include "discovery/host_slots.h"
#include "runtime/base/status.h"

namespace hvd {

class HostSource {
 public:
  virtual ~HostSource() = default;
  // An ordered list without repetitions, or one sentence why there is none. Answers at once.
  virtual Result<std::vector<HostSlots>> Hosts() = 0;
};

}  // namespace hvd

#endif  // HVD_DISCOVERY_HOST_SOURCE_H_
