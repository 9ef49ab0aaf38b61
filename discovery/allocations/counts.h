// Slurm's per-node counts: "4(x2),2" is 4, 4, 2. Pure.
#ifndef HVD_DISCOVERY_ALLOCATIONS_COUNTS_H_
#define HVD_DISCOVERY_ALLOCATIONS_COUNTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace hvd {

// One number for each of `nodes`; nothing if there are more, fewer, or other text.
std::optional<std::vector<uint32_t>> ParseCounts(std::string_view text, size_t nodes);

}  // namespace hvd

#endif  // HVD_DISCOVERY_ALLOCATIONS_COUNTS_H_
