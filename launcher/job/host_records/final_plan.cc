#include "launcher/job/host_records/final_plan.h"

#include <algorithm>
#include <utility>

#include "launcher/job/host_records/host_stages.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

bool SameHost(const HostSlots& one, const AgentFacts& of_one, const HostSlots& other,
              const AgentFacts& of_other) {
  return !of_one.identity.empty() && of_one.identity == of_other.identity &&
         (one.remote || other.remote);
}

uint64_t Sum(const std::vector<uint32_t>& slots) {
  uint64_t sum = 0;
  for (uint32_t of_host : slots) sum += of_host;
  return sum;
}

}  // namespace

Result<PlanDraft> DraftPlan(const std::vector<HostSlots>& hosts, uint32_t num_proc) {
  Result<Plan> plan = MakePlan(hosts, num_proc);
  if (plan.ok()) {
    std::vector<HostSlots> needed(hosts.begin(),
                                  hosts.begin() + static_cast<ptrdiff_t>(plan->hosts.size()));
    return PlanDraft{std::move(needed), std::move(*plan)};
  }
  bool all_known = std::all_of(hosts.begin(), hosts.end(),
                               [](const HostSlots& host) { return host.slots_known; });
  if (all_known || num_proc == 0) return plan.status();
  std::vector<uint32_t> at_most;
  for (const HostSlots& host : hosts) at_most.push_back(host.slots_known ? host.slots : num_proc);
  return PlanDraft{hosts, PlaceRanks(NamesOf(hosts), at_most, num_proc)};
}

Result<FinalPlan> MakeFinalPlan(const std::vector<HostSlots>& hosts,
                                const std::vector<AgentFacts>& facts, uint32_t num_proc) {
  const std::vector<std::string> names = NamesOf(hosts);
  FinalPlan final;
  std::vector<uint32_t> slots(hosts.size());
  std::vector<std::vector<std::string>> also(hosts.size());  // other names of a host
  std::vector<bool> merged(hosts.size());
  for (uint32_t host = 0; host < hosts.size(); ++host) {
    uint32_t first = 0;
    while (first < host && !SameHost(hosts[first], facts[first], hosts[host], facts[host])) ++first;
    // A machine's reported slots count once, however many times it is named.
    bool says = !hosts[host].slots_known && facts[host].slots > 0;
    uint32_t has = says ? facts[host].slots : hosts[host].slots;
    merged[host] = first < host;
    if (merged[host]) also[first].push_back(names[host]);
    slots[first] = merged[host] && says ? std::max(slots[first], has) : slots[first] + has;
  }
  for (uint32_t host = 0; host < hosts.size(); ++host) {
    if (also[host].empty()) continue;
    final.notes.push_back(HostNames(also[host]) + (also[host].size() == 1 ? " is" : " are") +
                          " the host " + names[host] + " under another name: one host with " +
                          SlotsText(slots[host]));
  }
  if (Sum(slots) < num_proc) return TooFewSlots(num_proc, Sum(slots));
  final.plan = PlaceRanks(names, slots, num_proc);
  std::vector<bool> used(hosts.size());
  for (uint32_t host : final.plan.UsedHosts()) used[host] = true;
  std::vector<std::string> idle;
  for (uint32_t host = 0; host < hosts.size(); ++host) {
    if (used[host]) continue;
    final.no_rank.push_back(host);
    if (!merged[host]) idle.push_back(names[host]);
  }
  if (!idle.empty()) {
    final.notes.push_back(
        Format("{}{} no rank: the hosts named before have slots for all {}; --slots-per-host 1 "
               "gives each host one",
               HostNames(idle), idle.size() == 1 ? " gets" : " get", num_proc));
  }
  return final;
}

std::string PlanText(const Plan& plan) {
  std::vector<std::string> names;
  for (uint32_t host : plan.UsedHosts()) names.push_back(plan.hosts[host]);
  return std::to_string(plan.size()) + (plan.size() == 1 ? " rank on " : " ranks on ") +
         std::to_string(names.size()) + (names.size() == 1 ? " host: " : " hosts: ") +
         HostNames(names);
}

}  // namespace hvd
