#include "discovery/allocations/find_allocation.h"

#include "configs/message_text.h"
#include "discovery/allocations/grid_engine_allocation.h"
#include "discovery/allocations/kubernetes_allocation.h"
#include "discovery/allocations/lsf_allocation.h"
#include "discovery/allocations/node_group.h"
#include "discovery/allocations/pbs_allocation.h"
#include "discovery/allocations/slurm_allocation.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr size_t kMostNamed = 4;  // hosts named in the line that announces an allocation

// With the slots of all its hosts.
Result<std::optional<Allocation>> WithSlots(Result<std::optional<Allocation>> found) {
  if (!found.ok() || !*found || (*found)->hosts.empty()) return found;
  (*found)->slots = 0;
  for (const HostSpec& host : (*found)->hosts) (*found)->slots += host.slots.value_or(0);
  return found;
}

}  // namespace

Result<std::optional<Allocation>> FindAllocation(const AllocationFacts& facts) {
  // The command line takes precedence over the environment.
  if (NamesNodes(facts)) return WithSlots(FindNodeAllocation(facts));
  for (auto* find :
       {FindSlurmAllocation, FindLsfAllocation, FindPbsAllocation, FindGridEngineAllocation,
        FindKubernetesAllocation, FindNodeAllocation, FindOtherPodsAllocation}) {
    Result<std::optional<Allocation>> found = WithSlots(find(facts));
    if (!found.ok()) {
      return InvalidArgument(found.status().message() +
                             "; --allocation never ignores it, -H names other hosts");
    }
    if (*found) return found;
  }
  return std::optional<Allocation>();
}

std::string AllocationText(const Allocation& allocation) {
  const size_t count = allocation.hosts.size();
  std::string text = Format("{} gives {}{}{}) on ", Printable(allocation.name), allocation.slots,
                            allocation.slots == 1 ? " slot (" : " slots (", allocation.slots_are);
  if (count == 0) return text + "this machine";
  text += std::to_string(count) + (count == 1 ? " host: " : " hosts: ");
  if (count > kMostNamed)
    return text + allocation.hosts.front().name + " to " + allocation.hosts.back().name;
  for (size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + allocation.hosts[i].name;
  return text;
}

std::string HostListText(const std::vector<HostSpec>& hosts) {
  std::string text;
  for (const HostSpec& host : hosts) {
    const bool is_address = host.name.find(':') != std::string::npos;
    text += text.empty() ? "" : ",";
    text += is_address ? "[" + host.name + "]:" : host.name;
    text += Format(":{}", host.slots.value_or(1));
  }
  return text;
}

}  // namespace hvd
