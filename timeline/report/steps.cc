#include <algorithm>
#include <map>
#include <unordered_map>

#include "timeline/report/report_parts.h"

namespace hvd {
namespace {

struct Uses {
  size_t count = 0;
  size_t first = 0;  // place of the first operation
};

}  // namespace

Steps FindSteps(const RankHistory& rank) {
  std::unordered_map<uint32_t, Uses> tensors;
  for (size_t i = 0; i < rank.operations.size(); ++i) {
    Uses& uses = tensors[rank.operations[i].tensor];
    if (uses.count++ == 0) uses.first = i;
  }
  std::map<size_t, size_t> by_count;  // how many tensors recur that often
  for (const auto& [tensor, uses] : tensors) {
    if (uses.count > 1) ++by_count[uses.count];
  }
  // A job that ended within a step has tensors that occurred once more than others.
  size_t best = 0, most = 0;
  for (const auto& [count, names] : by_count) {
    const auto next = by_count.find(count + 1);
    const size_t with_next = names + (next == by_count.end() ? 0 : next->second);
    if (with_next <= most) continue;
    most = with_next;
    best = count;
  }
  Steps steps;
  steps.tensors = most;
  if (most == 0) return steps;
  const Uses* anchor = nullptr;
  uint32_t begins = 0;
  for (const auto& [tensor, uses] : tensors) {
    if (uses.count != best && uses.count != best + 1) continue;
    if (anchor != nullptr && uses.first > anchor->first) continue;
    anchor = &uses;
    begins = tensor;
  }
  for (size_t i = 0; i < rank.operations.size(); ++i) {
    if (rank.operations[i].tensor == begins) steps.begins.push_back(i);
  }
  return steps;
}

}  // namespace hvd
