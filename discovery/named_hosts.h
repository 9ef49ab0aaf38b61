// The hosts that the user named, with -H or a host file.
#ifndef HVD_DISCOVERY_NAMED_HOSTS_H_
#define HVD_DISCOVERY_NAMED_HOSTS_H_

#include <functional>
#include <string>
#include <vector>

#include "discovery/host_slots.h"
#include "discovery/host_spec.h"
#include "runtime/base/status.h"

namespace hvd {

// What is asked about the world.
struct MachineFacts {
  std::function<bool(const std::string&)> is_this_machine;
  // Of a host without a number; 0: not known before we are there.
  std::function<uint32_t(bool remote)> default_slots;
};

// Adds one more place of a host to it; `host.slots` is 0 before the first. The first place that
// says how the host is reached counts; the slots of the host are the sum of all. Pure but for
// `facts`.
void AddPlace(const HostSpec& spec, const MachineFacts& facts, HostSlots& host);

// In the order in which they were named first, none twice; or one sentence why there is none. This
// machine goes by its first name, with the slots of all its names. One name with two ports of ssh
// is two hosts: two containers, perhaps. Pure but for `facts`.
Result<std::vector<HostSlots>> MergeNamedHosts(const std::vector<HostSpec>& specs,
                                               const MachineFacts& facts);

// One machine as `count` hosts, each with the slots of the whole: for tests. Pure.
std::vector<HostSlots> PlayHosts(const HostSlots& machine, uint32_t count);

}  // namespace hvd

#endif  // HVD_DISCOVERY_NAMED_HOSTS_H_
