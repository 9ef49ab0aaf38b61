// The allocation of a parallel environment of Grid Engine. Pure.
#ifndef HVD_DISCOVERY_ALLOCATIONS_GRID_ENGINE_ALLOCATION_H_
#define HVD_DISCOVERY_ALLOCATIONS_GRID_ENGINE_ALLOCATION_H_

#include <optional>

#include "discovery/allocations/allocation.h"

namespace hvd {

// Nothing if PE_HOSTFILE is not set.
Result<std::optional<Allocation>> FindGridEngineAllocation(const AllocationFacts& facts);

}  // namespace hvd

#endif  // HVD_DISCOVERY_ALLOCATIONS_GRID_ENGINE_ALLOCATION_H_
