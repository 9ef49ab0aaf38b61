#include "discovery/fixed_hosts.h"

#include <algorithm>
#include <utility>

namespace hvd {

FixedHosts::FixedHosts(std::vector<HostSpec> specs, MachineFacts facts)
    : specs_(std::move(specs)), facts_(std::move(facts)) {}

Result<std::vector<HostSlots>> FixedHosts::Hosts() {
  std::vector<HostSlots> hosts;
  for (const HostSpec& spec : specs_) {
    HostSlots entry{spec.name};
    entry.remote = !facts_.is_this_machine(spec.name);
    // What another machine has is not known before we are there.
    entry.slots = spec.slots ? *spec.slots : facts_.default_slots(entry.remote);
    auto known = std::find_if(hosts.begin(), hosts.end(), [&](const HostSlots& h) {
      return h.remote == entry.remote && (!h.remote || h.host == entry.host);
    });
    if (known == hosts.end()) {
      hosts.push_back(std::move(entry));
    } else {
      known->slots += entry.slots;
    }
  }
  if (hosts.empty()) return InvalidArgument("no host was named; try -H localhost");
  return hosts;
}

std::vector<HostSlots> PlayHosts(const HostSlots& machine, uint32_t count) {
  if (count <= 1) return {machine};
  std::vector<HostSlots> hosts;
  for (uint32_t i = 0; i < count; ++i)
    hosts.push_back({"host-" + std::to_string(i), machine.slots});
  return hosts;
}

}  // namespace hvd
