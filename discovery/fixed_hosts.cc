#include "discovery/fixed_hosts.h"

#include <utility>

#include "configs/message_text.h"

namespace hvd {

FixedHosts::FixedHosts(std::vector<HostSpec> specs, MachineFacts facts)
    : specs_(std::move(specs)), facts_(std::move(facts)) {}

// The first who says how to reach the machine is heard; what it can take is the sum of all.
void FixedHosts::Add(const HostSpec& spec, HostSlots& machine) const {
  bool first = machine.host.empty();
  if (first) machine.host = spec.name;
  if (machine.user.empty()) machine.user = spec.user;
  if (machine.port == 0) machine.port = spec.port;
  machine.slots += spec.slots ? *spec.slots : facts_.default_slots();
  if (first) {
    machine.max_slots = spec.max_slots;
  } else if (machine.max_slots && spec.max_slots) {
    *machine.max_slots += *spec.max_slots;
  } else {
    machine.max_slots.reset();
  }
}

Result<std::vector<HostSlots>> FixedHosts::Hosts() {
  HostSlots machine;
  for (const HostSpec& spec : specs_) {
    if (!facts_.is_this_machine(spec.name)) {
      return InvalidArgument("host " + Printable(spec.name) +
                             " is not this machine, and jobs on other hosts are not available "
                             "yet; try -H localhost");
    }
    Add(spec, machine);
  }
  if (machine.host.empty()) return InvalidArgument("no host was named; try -H localhost");
  return std::vector<HostSlots>{machine};
}

std::vector<HostSlots> PlayHosts(const HostSlots& machine, uint32_t count) {
  if (count <= 1) return {machine};
  std::vector<HostSlots> hosts;
  for (uint32_t i = 0; i < count; ++i)
    hosts.push_back({"host-" + std::to_string(i), machine.slots});
  return hosts;
}

}  // namespace hvd
