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

// One host or range a line as in a host file: "name:slots", "name", "[address]:slots",
// "name slots=N"; blank lines and text after "#" are ignored. In the order of the lines, none
// twice: a host that is printed again counts once, by its last line; where the two differ, `notes`
// gets a sentence for the user. "name:0" is a host without a free slot and is left out. No host at
// all is fine. kInvalidArgument: one sentence with the number of the bad line and its text.
Result<std::vector<HostSpec>> ParseDiscoveredHosts(std::string_view text,
                                                   std::vector<std::string>& notes);

// The hosts of an elastic job: each name is a host of its own, two names of this machine are two.
// A name that comes again, as in machine files, has the slots of all its places.
std::vector<HostSlots> HostsByName(const std::vector<HostSpec>& specs, const MachineFacts& facts);

}  // namespace hvd

#endif  // HVD_DISCOVERY_DISCOVERED_HOSTS_H_
