#include "launcher/agent/workers/cpu_assignment.h"

#include <algorithm>
#include <set>

namespace hvd {

CpuAssignment::CpuAssignment(BindTo bind_to, std::vector<Cpu> cpus, uint32_t slots,
                             std::vector<int> gpu_nodes, uint32_t usable)
    : bind_to_(bind_to),
      cpus_(std::move(cpus)),
      gpu_nodes_(std::move(gpu_nodes)),
      usable_(usable),
      bound_(BindRanks(bind_to_, cpus_, slots, gpu_nodes_)),
      shares_(CoreShares(bound_)) {}

void CpuAssignment::Add(const Placement& place) {
  const auto bound = BindRanks(bind_to_, cpus_, std::max(1U, place.local_size), gpu_nodes_);
  const size_t part = place.local_rank % bound.size();
  bound_.push_back(bound[part]);
  shares_.push_back(CoreShares(bound)[part]);
}

std::vector<int> CpuAssignment::NodesOf(uint32_t slot) const {
  std::set<int> nodes;
  for (const Cpu& cpu : cpus_) {
    if (std::ranges::find(bound_[slot], cpu.number) != bound_[slot].end()) nodes.insert(cpu.node);
  }
  return {nodes.begin(), nodes.end()};
}

WorkerShare CpuAssignment::ShareOf(uint32_t slot) const {
  WorkerShare share{all_cores(), shares_.at(slot)};
  if (usable_ < all_cores()) share.quota_cores = usable_;
  return share;
}

void CpuAssignment::UseIfUnbound(uint32_t slot, const std::vector<int>& cpus) {
  if (cpus.empty() || !bound_[slot].empty()) return;
  bound_[slot] = cpus;
  shares_[slot] = static_cast<uint32_t>(cpus.size());
}

}  // namespace hvd
