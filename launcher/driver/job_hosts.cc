#include "launcher/driver/job_hosts.h"

#include <algorithm>

namespace hvd {

// A plan that was taken over has no listings.
JobHosts::JobHosts(const DriverOptions& options) : master_(options.master) {
  for (size_t host = 0; host < options.hosts.size(); ++host) {
    const bool listed = host < options.named_hosts.size();
    hosts_.push_back({listed ? options.named_hosts[host].host : "", options.hosts[host].remote,
                      options.hosts[host].addresses, 0});
  }
}

bool JobHosts::any_remote() const { return std::ranges::any_of(hosts_, &JobHost::remote); }

bool JobHosts::SeveralMachines(const Plan& plan) const {
  const std::vector<uint32_t> used = plan.UsedHosts();
  return used.size() > 1 &&
         std::ranges::any_of(used, [this](uint32_t host) { return hosts_[host].remote; });
}

}  // namespace hvd
