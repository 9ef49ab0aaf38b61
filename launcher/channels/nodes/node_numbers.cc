#include "launcher/channels/nodes/node_numbers.h"

#include <algorithm>

namespace hvd {

std::optional<uint32_t> NodeNumbers::Take(uint32_t id, const std::vector<WantedNode>& wanted,
                                          TimePoint now) {
  for (const auto& [number, known] : ids_) {
    if (known == id) return number;
  }
  std::optional<uint32_t> unused, left;
  for (const WantedNode& node : wanted) {
    const bool used = ids_.contains(node.number);
    if (used && now - node.since < kNodeAbsence) continue;
    std::optional<uint32_t>& best = used ? left : unused;
    best = std::min(best.value_or(node.number), node.number);
  }
  const std::optional<uint32_t> number = unused ? unused : left;
  if (number) ids_[*number] = id;
  return number;
}

}  // namespace hvd
