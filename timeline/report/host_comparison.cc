#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "runtime/base/quantile.h"
#include "timeline/report/report_parts.h"

namespace hvd {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr uint64_t kLarge = 65536;

// One operation on each host: when all of its ranks had announced it, and when the first one had
// the result.
struct Round {
  std::vector<int64_t> ready_ns, end_ns;  // by host
  uint64_t bytes = 0;
};

struct HostOf {
  std::vector<std::string> names;
  std::vector<size_t> of_rank;
};

HostOf HostsIn(const TraceFacts& facts) {
  HostOf hosts;
  for (const RankHistory& rank : facts.ranks) {
    const auto found = std::find(hosts.names.begin(), hosts.names.end(), rank.host);
    hosts.of_rank.push_back(static_cast<size_t>(found - hosts.names.begin()));
    if (found == hosts.names.end()) hosts.names.push_back(rank.host);
  }
  return hosts;
}

// By tensor and by how often each rank submitted it before.
std::map<std::pair<uint32_t, uint32_t>, Round> RoundsOf(const TraceFacts& facts,
                                                        const HostOf& hosts) {
  std::map<std::pair<uint32_t, uint32_t>, Round> rounds;
  for (size_t i = 0; i < facts.ranks.size(); ++i) {
    std::map<uint32_t, uint32_t> submitted;
    for (const OperationTimes& operation : facts.ranks[i].operations) {
      const uint32_t number = submitted[operation.tensor]++;
      if (operation.start_ns < 0 || operation.end_ns < 0) continue;
      Round& round = rounds[{operation.tensor, number}];
      round.ready_ns.resize(hosts.names.size(), -kNever);
      round.end_ns.resize(hosts.names.size(), kNever);
      const size_t host = hosts.of_rank[i];
      round.ready_ns[host] = std::max(round.ready_ns[host], operation.start_ns);
      round.end_ns[host] = std::min(round.end_ns[host], operation.end_ns);
      round.bytes = operation.bytes;
    }
  }
  return rounds;
}

}  // namespace

std::vector<HostSpeed> CompareHosts(const TraceFacts& facts) {
  const HostOf hosts = HostsIn(facts);
  if (hosts.names.size() < 2) return {};
  std::vector<HostSpeed> reports(hosts.names.size());
  std::vector<std::vector<int64_t>> behind(hosts.names.size());
  std::vector<double> bytes(hosts.names.size()), seconds(hosts.names.size());
  for (const auto& [key, round] : RoundsOf(facts, hosts)) {
    const int64_t first = *std::min_element(round.end_ns.begin(), round.end_ns.end());
    const int64_t ready = *std::max_element(round.ready_ns.begin(), round.ready_ns.end());
    const bool everywhere =
        std::find(round.end_ns.begin(), round.end_ns.end(), kNever) == round.end_ns.end();
    for (size_t host = 0; everywhere && host < reports.size(); ++host) {
      behind[host].push_back(round.end_ns[host] - first);
      if (round.bytes < kLarge || round.end_ns[host] <= ready) continue;
      bytes[host] += static_cast<double>(round.bytes);
      seconds[host] += static_cast<double>(round.end_ns[host] - ready) / 1e9;
    }
  }
  for (size_t host = 0; host < reports.size(); ++host) {
    reports[host].name = hosts.names[host];
    reports[host].ranks =
        static_cast<size_t>(std::count(hosts.of_rank.begin(), hosts.of_rank.end(), host));
    reports[host].behind_ns = Median(behind[host]);
    reports[host].bytes_per_second = seconds[host] > 0 ? bytes[host] / seconds[host] : 0;
  }
  return reports;
}

}  // namespace hvd
