// The hosts of -H or a host file.
#ifndef HVD_DISCOVERY_NAMED_HOSTS_H_
#define HVD_DISCOVERY_NAMED_HOSTS_H_

#include <functional>
#include <string>
#include <vector>

#include "discovery/host_slots.h"
#include "discovery/host_spec.h"
#include "runtime/base/status.h"

namespace hvd {

// Access to facts about machines.
struct MachineFacts {
  std::function<bool(const std::string&)> is_this_machine;
  // Slots of a host without a number; 0: unknown until its agent reports.
  std::function<uint32_t(bool remote)> default_slots;
};

// Merges an entry into its host; `host.slots` is 0 before the first. The first entry with
// connection options counts; slots add up. Pure except `facts`.
void AddPlace(const HostSpec& spec, const MachineFacts& facts, HostSlots& host);

// In order of first appearance, without duplicates; or one sentence why there are none. This
// machine has its first name, with the slots of all its names. One name with two ssh ports is two
// hosts (for instance containers). Pure except `facts`.
Result<std::vector<HostSlots>> MergeNamedHosts(const std::vector<HostSpec>& specs,
                                               const MachineFacts& facts);

// One machine as `count` hosts, each with the slots of the whole: for tests. Pure.
std::vector<HostSlots> SimulateHosts(const HostSlots& machine, uint32_t count);

}  // namespace hvd

#endif  // HVD_DISCOVERY_NAMED_HOSTS_H_
