// Whether this process is one of several tasks that a launcher started. Pure.
#ifndef HVD_DISCOVERY_ALLOCATIONS_TASK_CHECK_H_
#define HVD_DISCOVERY_ALLOCATIONS_TASK_CHECK_H_

#include "discovery/allocations/allocation.h"

namespace hvd {

// kInvalidArgument if this process is one of several tasks of mpirun, srun or jsrun, each of which
// would start its own job.
Status CheckOneTask(const AllocationFacts& facts);

}  // namespace hvd

#endif  // HVD_DISCOVERY_ALLOCATIONS_TASK_CHECK_H_
