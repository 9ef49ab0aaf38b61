#include "launcher/driver/services/stdin_broadcast.h"

#include <algorithm>
#include <utility>

namespace hvd {

std::vector<uint32_t> HostsThatReadStdin(const Plan& plan, StdinTo to) {
  if (to == StdinTo::kNone || plan.ranks.empty()) return {};
  if (to == StdinTo::kRank0) return {plan.ranks[0].host};
  return plan.UsedHosts();
}

std::vector<uint32_t> StdinBroadcast::readers() const {
  std::vector<uint32_t> hosts;
  for (const auto& [host, bytes] : read_) hosts.push_back(host);
  return hosts;
}

Result<uint64_t> StdinBroadcast::NoteRead(uint32_t host, uint64_t bytes) {
  auto reader = read_.find(host);
  if (reader == read_.end()) return uint64_t{0};
  if (bytes > sent_ - reader->second)
    return InvalidArgument("its agent says that its workers read more than they were sent");
  reader->second += bytes;
  auto slowest = std::min_element(read_.begin(), read_.end(),
                                  [](const auto& a, const auto& b) { return a.second < b.second; });
  const uint64_t allowed = std::max(allowed_, slowest->second + kWindow);
  return allowed - std::exchange(allowed_, allowed);
}

}  // namespace hvd
