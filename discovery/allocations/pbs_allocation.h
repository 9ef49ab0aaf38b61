// The allocation of PBS or Torque. Pure.
#ifndef HVD_DISCOVERY_ALLOCATIONS_PBS_ALLOCATION_H_
#define HVD_DISCOVERY_ALLOCATIONS_PBS_ALLOCATION_H_

#include <optional>

#include "discovery/allocations/allocation.h"

namespace hvd {

// Nothing if neither PBS_JOBID nor PBS_NODEFILE is set.
Result<std::optional<Allocation>> FindPbsAllocation(const AllocationFacts& facts);

}  // namespace hvd

#endif  // HVD_DISCOVERY_ALLOCATIONS_PBS_ALLOCATION_H_
