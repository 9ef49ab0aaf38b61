#include "launcher/elastic_hosts/named_hosts.h"

#include <memory>
#include <string>
#include <utility>

#include "discovery/discovered_hosts.h"

namespace hvd {

void OwnNames::Learn(const std::vector<std::string>& names, std::function<void()> then) {
  std::map<std::string, bool> kept;
  std::vector<std::string> asked;
  for (const std::string& name : names) {
    if (const auto known = known_.find(name); known != known_.end()) {
      kept.insert(*known);
    } else {
      asked.push_back(name);
    }
  }
  known_ = std::move(kept);
  auto own = std::make_shared<std::set<std::string>>();
  auto question = [among = among_, asked, own] {
    if (!asked.empty()) *own = among(asked);
  };
  off_loop_.Ask(question, [this, asked, own, then = std::move(then)] {
    for (const std::string& name : asked) known_[name] = own->contains(name);
    then();
  });
}

bool OwnNames::Contains(const std::string& name) const {
  const auto known = known_.find(name);
  return known != known_.end() && known->second;
}

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
