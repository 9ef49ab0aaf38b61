#include "launcher/agent/workers/cpu_assignment.h"

#include <algorithm>

namespace hvd {

CpuAssignment::CpuAssignment(BindTo bind_to, std::vector<Cpu> cpus, uint32_t slots)
    : bind_to_(bind_to),
      cpus_(std::move(cpus)),
      bound_(BindRanks(bind_to_, cpus_, slots)),
      shares_(CoreShares(bound_)) {}

void CpuAssignment::Add(const Placement& place) {
  const auto bound = BindRanks(bind_to_, cpus_, std::max(1U, place.local_size));
  const size_t part = place.local_rank % bound.size();
  bound_.push_back(bound[part]);
  shares_.push_back(CoreShares(bound)[part]);
}

void CpuAssignment::UseIfUnbound(uint32_t slot, const std::vector<int>& cpus) {
  if (cpus.empty() || !bound_[slot].empty()) return;
  bound_[slot] = cpus;
  shares_[slot] = static_cast<uint32_t>(cpus.size());
}

}  // namespace hvd
