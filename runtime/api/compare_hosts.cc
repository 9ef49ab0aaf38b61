#include "runtime/api/compare_hosts.h"

#include <vector>

#include "runtime/core/request/request.h"

namespace hvd {

Status CompareHosts(std::string_view name, std::span<const HostDetail> hosts) {
  std::vector<Detail> details(hosts.size());
  std::vector<RankDetail> ranks;
  for (size_t i = 0; i < hosts.size(); ++i) {
    std::string_view name_in_detail;
    Status decoded = DecodeDetail(hosts[i].detail, &details[i], &name_in_detail);
    if (!decoded.ok()) return decoded;
    ranks.push_back({hosts[i].rank, &details[i]});
  }
  return CompareDetails(name, ranks);
}

}  // namespace hvd
