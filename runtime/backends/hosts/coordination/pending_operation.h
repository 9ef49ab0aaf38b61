// PendingOperation: the hosts' reports about one operation, from the first ready host to the last.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_PENDING_OPERATION_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_PENDING_OPERATION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/backends/hosts/coordination/coordination_messages.h"
#include "runtime/backends/hosts/coordination/host_map.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

struct LeaderReport {
  uint32_t host = 0, leader = 0;
  ReadyMessage msg;
};

struct PendingOperation {
  std::vector<uint32_t> ranks;        // of the process set
  std::vector<LeaderReport> reports;  // ascending by host
  TimePoint since, warned_at;
  std::vector<uint32_t> last_reported;  // missing ranks, as last sent to the leaders
  Status failed;  // not ok: sent to its leaders, also to those still to report

  const ReadyMessage& first() const { return reports[0].msg; }
  bool HasReported(uint32_t host) const {
    return std::ranges::binary_search(reports, host, {}, &LeaderReport::host);
  }
  std::vector<uint32_t> Leaders() const {
    std::vector<uint32_t> leaders;
    for (const LeaderReport& report : reports) leaders.push_back(report.leader);
    return leaders;
  }
  // Participating members on the hosts that have reported.
  uint32_t Participants(const HostMap& map) const {
    auto participants =
        std::ranges::count_if(ranks, [&](uint32_t rank) { return HasReported(map.host_of[rank]); });
    for (const LeaderReport& report : reports) {
      participants -= static_cast<ptrdiff_t>(report.msg.joined.size());
    }
    return static_cast<uint32_t>(participants);
  }
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_PENDING_OPERATION_H_
