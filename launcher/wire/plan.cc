#include "launcher/wire/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

std::vector<HostSlots> Merge(const std::vector<HostSlots>& hosts) {
  std::vector<HostSlots> merged;
  for (const HostSlots& entry : hosts) {
    auto known = std::find_if(merged.begin(), merged.end(), [&](const HostSlots& h) {
      return h.host == entry.host && h.port == entry.port;
    });
    if (known == merged.end()) {
      merged.push_back(entry);
    } else {
      known->slots += entry.slots;
    }
  }
  return merged;
}

std::vector<uint32_t> LocalSizes(const std::vector<uint32_t>& slots, uint32_t num_proc) {
  std::vector<uint32_t> sizes;
  for (uint32_t has : slots) {
    uint32_t size = std::min(has, num_proc);
    num_proc -= size;
    sizes.push_back(size);
  }
  return sizes;
}

void SetInterHostComm(const std::vector<uint32_t>& local_sizes, Placement& placement) {
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

std::vector<std::vector<Placement>> Plan::ByHost() const {
  std::vector<std::vector<Placement>> found(hosts.size());
  for (const Placement& p : ranks) found[p.host].push_back(p);
  return found;
}

std::vector<uint32_t> Plan::UsedHosts() const {
  std::vector<uint32_t> used;
  std::set<uint32_t> known;
  for (const Placement& p : ranks) {
    if (known.insert(p.host).second) used.push_back(p.host);
  }
  return used;
}

std::vector<RankRun> Plan::Layout() const {
  std::map<uint32_t, uint32_t> numbers;
  std::vector<RankPlace> places;
  for (const Placement& p : ranks) {
    const auto number = static_cast<uint32_t>(numbers.size());
    places.push_back({numbers.emplace(p.host, number).first->second, p.local_rank});
  }
  return RunsOf(places);
}

std::string SlotsText(uint64_t slots) {
  return std::to_string(slots) + (slots == 1 ? " slot" : " slots");
}

Status TooFewSlots(uint32_t num_proc, uint64_t slots) {
  return InvalidArgument(
      Format("{} processes were asked for, but the hosts have {}; try -np {} or list more slots "
             "(-H host:N, --slots-per-host N)",
             num_proc, SlotsText(slots), slots));
}

Plan PlaceRanks(std::vector<std::string> hosts, const std::vector<uint32_t>& slots,
                uint32_t num_proc) {
  const std::vector<uint32_t> sizes = LocalSizes(slots, num_proc);
  std::vector<uint32_t> host_of_rank;
  for (uint32_t host = 0; host < sizes.size(); ++host)
    host_of_rank.insert(host_of_rank.end(), sizes[host], host);
  return PlanOfPlaces(std::move(hosts), host_of_rank);
}

Plan PlanOfPlaces(std::vector<std::string> hosts, const std::vector<uint32_t>& host_of_rank) {
  Plan plan;
  plan.hosts = std::move(hosts);
  std::vector<uint32_t> sizes(plan.hosts.size()), placed(plan.hosts.size());
  for (uint32_t host : host_of_rank) ++sizes[host];
  for (uint32_t host : host_of_rank) {
    Placement placement{plan.size(), host, placed[host]++, sizes[host], 0, 0};
    SetInterHostComm(sizes, placement);
    plan.ranks.push_back(placement);
  }
  for (const Placement& p : plan.ranks)
    plan.homogeneous = plan.homogeneous && p.local_size == plan.ranks[0].local_size;
  return plan;
}

std::vector<std::string> NamesOf(const std::vector<HostSlots>& hosts) {
  std::map<std::string, int> times;
  for (const HostSlots& host : hosts) ++times[host.host];
  std::vector<std::string> names;
  for (const HostSlots& host : hosts) {
    bool alone = times[host.host] == 1 || host.port == 0;
    names.push_back(alone ? host.host : Format("[{}]:{}", host.host, host.port));
  }
  return names;
}

Result<Plan> MakePlan(const std::vector<HostSlots>& hosts, uint32_t num_proc) {
  std::vector<HostSlots> merged = Merge(hosts);
  std::erase_if(merged, [](const HostSlots& h) { return h.slots == 0; });
  uint64_t slots = 0;
  for (const HostSlots& host : merged) slots += host.slots;
  if (num_proc == 0) return InvalidArgument("a job of 0 processes; try -np 1");
  if (slots < num_proc) return TooFewSlots(num_proc, slots);
  std::vector<uint32_t> of_host;
  for (const HostSlots& host : merged) of_host.push_back(host.slots);
  Plan plan = PlaceRanks(NamesOf(merged), of_host, num_proc);
  plan.hosts.resize(plan.ranks.back().host + 1);
  return plan;
}

}  // namespace hvd
