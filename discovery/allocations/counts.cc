#include "discovery/allocations/counts.h"

#include <algorithm>

#include "runtime/base/text/number_text.h"

namespace hvd {

std::optional<std::vector<uint32_t>> ParseCounts(std::string_view text, size_t nodes) {
  std::vector<uint32_t> counts;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    const size_t times = entry.find("(x");
    const std::optional<uint32_t> count = ParseWhole<uint32_t>(entry.substr(0, times));
    std::optional<uint32_t> repeated = 1;
    if (times != std::string_view::npos) {
      if (!entry.ends_with(')')) return std::nullopt;
      repeated = ParseWhole<uint32_t>(entry.substr(times + 2, entry.size() - times - 3));
    }
    if (!count || !repeated || *repeated > nodes - counts.size()) return std::nullopt;
    counts.insert(counts.end(), *repeated, *count);
  }
  if (counts.size() != nodes) return std::nullopt;
  return counts;
}

}  // namespace hvd
