// Slurm's lists of nodes, "node[1-3,7],gpu01", and of counts per node, "4(x2),2". Pure.
#ifndef HVD_DISCOVERY_ALLOCATIONS_SLURM_NODES_H_
#define HVD_DISCOVERY_ALLOCATIONS_SLURM_NODES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace hvd {

// The names in order. kInvalidArgument, also for more than `limit` names: completes "the list is no
// list of nodes", with or without ": " and a reason.
Result<std::vector<std::string>> ParseSlurmNodes(std::string_view list, size_t limit);

// One number for each of `nodes`: 4, 4, 2 for "4(x2),2"; nothing if there are more, fewer, or
// other text.
std::optional<std::vector<uint32_t>> ParseCounts(std::string_view text, size_t nodes);

}  // namespace hvd

#endif  // HVD_DISCOVERY_ALLOCATIONS_SLURM_NODES_H_
