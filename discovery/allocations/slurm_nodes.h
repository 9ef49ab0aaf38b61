// Slurm's lists of nodes: "node[1-3,7],gpu01". Pure.
#ifndef HVD_DISCOVERY_ALLOCATIONS_SLURM_NODES_H_
#define HVD_DISCOVERY_ALLOCATIONS_SLURM_NODES_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace hvd {

// The names in order. kInvalidArgument, also for more than `limit` names: completes "the list is no
// list of nodes", with or without ": " and a reason.
Result<std::vector<std::string>> ParseSlurmNodes(std::string_view list, size_t limit);

}  // namespace hvd

#endif  // HVD_DISCOVERY_ALLOCATIONS_SLURM_NODES_H_
