#include "discovery/allocations/slurm_nodes.h"

#include "discovery/host_item.h"
#include "discovery/host_range.h"

namespace hvd {

Result<std::vector<std::string>> ParseSlurmNodes(std::string_view list, size_t limit) {
  constexpr const char* kNoList = "is no list of nodes";
  std::vector<std::string> names;
  for (bool last = false; !last;) {
    const std::string_view item = TakeListItem(list, last);
    Result<HostItem> host = ParseHostItem(item, false, limit - names.size());
    if (!host.ok()) return InvalidArgument(kNoList + (": " + host.status().message()));
    if (host->slots || host->port != 0 || !host->user.empty()) return InvalidArgument(kNoList);
    names.insert(names.end(), host->names.begin(), host->names.end());
  }
  return names;
}

}  // namespace hvd
