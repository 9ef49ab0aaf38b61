#include "launcher/plan.h"

#include <algorithm>

namespace hvd {
namespace {

std::vector<HostSlots> Merge(const std::vector<HostSlots>& hosts) {
  std::vector<HostSlots> merged;
  for (const HostSlots& entry : hosts) {
    auto known = std::find_if(merged.begin(), merged.end(),
                              [&](const HostSlots& h) { return h.host == entry.host; });
    if (known == merged.end()) {
      merged.push_back(entry);
    } else {
      known->slots += entry.slots;
    }
  }
  return merged;
}

std::vector<uint32_t> LocalSizes(const std::vector<HostSlots>& hosts, uint32_t num_proc) {
  std::vector<uint32_t> sizes;
  for (const HostSlots& host : hosts) {
    uint32_t size = std::min(host.slots, num_proc);
    num_proc -= size;
    sizes.push_back(size);
  }
  return sizes;
}

void SetCross(const std::vector<uint32_t>& local_sizes, Placement& placement) {
  for (uint32_t host = 0; host < local_sizes.size(); ++host) {
    if (local_sizes[host] <= placement.local_rank) continue;
    if (host < placement.host) ++placement.cross_rank;
    ++placement.cross_size;
  }
}

}  // namespace

std::vector<Placement> Plan::OnHost(uint32_t host) const {
  std::vector<Placement> found;
  for (const Placement& p : ranks) {
    if (p.host == host) found.push_back(p);
  }
  return found;
}

std::vector<RankRun> Plan::Layout() const {
  std::vector<RankPlace> places;
  for (const Placement& p : ranks) places.push_back({p.host, p.local_rank});
  return RunsOf(places);
}

Result<Plan> MakePlan(const std::vector<HostSlots>& hosts, uint32_t num_proc) {
  std::vector<HostSlots> merged = Merge(hosts);
  std::erase_if(merged, [](const HostSlots& h) { return h.slots == 0; });
  uint64_t slots = 0;
  for (const HostSlots& host : merged) slots += host.slots;
  if (num_proc == 0) return InvalidArgument("a job of 0 processes; try -np 1");
  if (slots < num_proc) {
    return InvalidArgument(
        std::to_string(num_proc) + " processes were asked for, but the hosts have " +
        std::to_string(slots) + " slots; try -np " + std::to_string(slots) + " or list more slots");
  }
  std::vector<uint32_t> sizes = LocalSizes(merged, num_proc);
  while (sizes.back() == 0) sizes.pop_back();
  Plan plan;
  for (uint32_t host = 0; host < sizes.size(); ++host) {
    plan.hosts.push_back(merged[host].host);
    plan.homogeneous = plan.homogeneous && sizes[host] == sizes[0];
    for (uint32_t local = 0; local < sizes[host]; ++local) {
      Placement placement{plan.size(), host, local, sizes[host], 0, 0};
      SetCross(sizes, placement);
      plan.ranks.push_back(placement);
    }
  }
  return plan;
}

}  // namespace hvd
