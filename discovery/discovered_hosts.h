// The hosts that a discovery script prints. Pure.
#ifndef HVD_DISCOVERY_DISCOVERED_HOSTS_H_
#define HVD_DISCOVERY_DISCOVERED_HOSTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "discovery/host_slots.h"
#include "discovery/host_spec.h"
#include "discovery/named_hosts.h"
#include "runtime/base/status.h"

namespace hvd {

// One host or range per line, as in a host file: "name:slots", "name", "[address]:slots", "name
// slots=N"; blank lines and text after "#" are ignored. In the order of the lines, without
// duplicates: the last line of a host counts, with a message in `notes` if they differ. "name:0"
// has no free slot and is dropped. An empty list is valid. kInvalidArgument: one sentence with
// number and text of the bad line.
Result<std::vector<HostSpec>> ParseDiscoveredHosts(std::string_view text,
                                                   std::vector<std::string>& notes);

// The hosts of an elastic job: each name is a separate host, even if two names are this machine.
// Slots of a repeated name, as in machine files, add up.
std::vector<HostSlots> HostsByName(const std::vector<HostSpec>& specs, const MachineFacts& facts);

}  // namespace hvd

#endif  // HVD_DISCOVERY_DISCOVERED_HOSTS_H_
