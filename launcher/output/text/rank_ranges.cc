#include "launcher/output/text/rank_ranges.h"

#include "runtime/base/text/format.h"

namespace hvd {

std::string RankRanges(std::span<const uint32_t> ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    uint32_t first = ranks[i], last = first;
    while (++i < ranks.size() && ranks[i] == last + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (last > first) text += Format("-{}", last);
  }
  return text;
}

}  // namespace hvd
