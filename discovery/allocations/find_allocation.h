// Tries all schedulers for the allocation in which this process runs. Pure: system access goes
// through AllocationFacts.
#ifndef HVD_DISCOVERY_ALLOCATIONS_FIND_ALLOCATION_H_
#define HVD_DISCOVERY_ALLOCATIONS_FIND_ALLOCATION_H_

#include <optional>
#include <string>
#include <vector>

#include "discovery/allocations/allocation.h"

namespace hvd {

// The allocation in which this process runs; nothing outside of one. kInvalidArgument: one sentence
// about variables or files that are contradictory, truncated or malformed.
Result<std::optional<Allocation>> FindAllocation(const AllocationFacts& facts);

// "Slurm job 7 gives 8 slots (one per task) on 2 hosts: node1, node2"
std::string AllocationText(const Allocation& allocation);
// As for -H: "node1:4,node2:4".
std::string HostListText(const std::vector<HostSpec>& hosts);

}  // namespace hvd

#endif  // HVD_DISCOVERY_ALLOCATIONS_FIND_ALLOCATION_H_
