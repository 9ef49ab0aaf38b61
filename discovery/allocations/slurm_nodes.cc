#include "discovery/allocations/slurm_nodes.h"

#include <algorithm>

#include "discovery/host_item.h"
#include "discovery/host_range.h"
#include "runtime/base/text/number_text.h"

namespace hvd {

Result<std::vector<std::string>> ParseSlurmNodes(std::string_view list, size_t limit) {
  constexpr const char* kNoList = "is no list of nodes";
  std::vector<std::string> names;
  for (bool last = false; !last;) {
    const std::string_view item = PopListItem(list, last);
    Result<HostItem> host = ParseHostItem(item, false, limit - names.size());
    if (!host.ok()) return InvalidArgument(kNoList + (": " + host.status().message()));
    if (host->slots || host->port != 0 || !host->user.empty()) return InvalidArgument(kNoList);
    names.insert(names.end(), host->names.begin(), host->names.end());
  }
  return names;
}

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
