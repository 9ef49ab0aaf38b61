#include "discovery/named_hosts.h"

#include <algorithm>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// If one of the ports is unknown, nothing suggests another host.
bool SamePort(uint16_t one, uint16_t other) { return one == other || one == 0 || other == 0; }

}  // namespace

void AddPlace(const HostSpec& spec, const MachineFacts& facts, HostSlots& host) {
  bool first = host.slots == 0;
  if (host.user.empty()) host.user = spec.user;
  if (host.port == 0) host.port = spec.port;
  uint32_t slots = spec.slots ? *spec.slots : facts.default_slots(host.remote);
  if (slots == 0) host.slots_known = false;
  host.slots += std::max(slots, 1U);
  if (first) {
    host.max_slots = spec.max_slots;
  } else if (host.max_slots && spec.max_slots) {
    *host.max_slots += *spec.max_slots;
  } else {
    host.max_slots.reset();
  }
}

Result<std::vector<HostSlots>> MergeNamedHosts(const std::vector<HostSpec>& specs,
                                               const MachineFacts& facts) {
  std::vector<HostSlots> hosts;
  for (const HostSpec& spec : specs) {
    bool remote = !facts.is_this_machine(spec.name);
    auto known = std::find_if(hosts.begin(), hosts.end(), [&](const HostSlots& h) {
      return h.remote == remote &&
             (!remote || (h.host == spec.name && SamePort(h.port, spec.port)));
    });
    if (known == hosts.end())
      known = hosts.insert(hosts.end(), {.host = spec.name, .remote = remote});
    AddPlace(spec, facts, *known);
  }
  if (hosts.empty()) return InvalidArgument("no host was named; try -H localhost");
  return hosts;
}

std::vector<HostSlots> SimulateHosts(const HostSlots& machine, uint32_t count) {
  if (count <= 1) return {machine};
  std::vector<HostSlots> hosts;
  for (uint32_t i = 0; i < count; ++i) hosts.push_back({Format("host-{}", i), machine.slots});
  return hosts;
}

}  // namespace hvd
