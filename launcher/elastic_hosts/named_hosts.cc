#include "launcher/elastic_hosts/named_hosts.h"

#include <string>
#include <utility>

#include "discovery/discovered_hosts.h"

namespace hvd {

void NamedHosts::Resolve(std::vector<HostSpec> specs,
                         std::function<void(std::vector<HostSlots>)> then) {
  std::vector<std::string> names;
  for (const HostSpec& spec : specs) names.push_back(spec.name);
  own_names_.Learn(names, [this, specs = std::move(specs), then = std::move(then)] {
    then(HostsByName(specs, {[this](const std::string& name) { return own_names_.Contains(name); },
                             default_slots_}));
  });
}

}  // namespace hvd
