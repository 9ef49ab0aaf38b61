// The hosts of an MPIJob or TrainJob of Kubeflow. Pure.
#ifndef HVD_DISCOVERY_ALLOCATIONS_KUBERNETES_ALLOCATION_H_
#define HVD_DISCOVERY_ALLOCATIONS_KUBERNETES_ALLOCATION_H_

#include <optional>

#include "discovery/allocations/allocation.h"

namespace hvd {

// Nothing where no host file of the operator is named.
Result<std::optional<Allocation>> FindKubernetesAllocation(const AllocationFacts& facts);

}  // namespace hvd

#endif  // HVD_DISCOVERY_ALLOCATIONS_KUBERNETES_ALLOCATION_H_
