// The allocation of LSF. Pure.
#ifndef HVD_DISCOVERY_ALLOCATIONS_LSF_ALLOCATION_H_
#define HVD_DISCOVERY_ALLOCATIONS_LSF_ALLOCATION_H_

#include <optional>

#include "discovery/allocations/allocation.h"

namespace hvd {

// Nothing if LSB_JOBID is not set.
Result<std::optional<Allocation>> FindLsfAllocation(const AllocationFacts& facts);

}  // namespace hvd

#endif  // HVD_DISCOVERY_ALLOCATIONS_LSF_ALLOCATION_H_
