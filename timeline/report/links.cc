#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "runtime/base/quantile.h"
#include "timeline/report/report_parts.h"

namespace hvd {
namespace {

constexpr double kSlow = 0.5;
constexpr size_t kFewest = 3;  // normal links

double MedianSpeed(const std::vector<LinkReport>& links) {
  std::vector<double> speeds;
  for (const LinkReport& link : links) speeds.push_back(link.bytes_per_second);
  return Median(std::move(speeds));
}

bool IsOf(const LinkReport& link, size_t host) { return link.from == host || link.to == host; }

// Those of the host, and the others.
std::pair<std::vector<LinkReport>, std::vector<LinkReport>> Split(
    const std::vector<LinkReport>& links, size_t host) {
  std::pair<std::vector<LinkReport>, std::vector<LinkReport>> split;
  for (const LinkReport& link : links)
    (IsOf(link, host) ? split.first : split.second).push_back(link);
  return split;
}

std::optional<SlowLinks> SlowHost(const std::vector<LinkReport>& links) {
  std::set<size_t> hosts;
  for (const LinkReport& link : links) hosts.insert({link.from, link.to});
  std::optional<SlowLinks> worst;
  for (size_t host : hosts) {
    const auto [own, others] = Split(links, host);
    const SlowLinks found{host, std::nullopt, MedianSpeed(own), MedianSpeed(others)};
    const bool all = std::all_of(own.begin(), own.end(), [&found](const LinkReport& link) {
      return link.bytes_per_second < kSlow * found.others;
    });
    if (own.size() < 2 || !all) continue;
    if (!worst || found.slow * worst->others < worst->slow * found.others) worst = found;
  }
  return worst;
}

}  // namespace

std::vector<LinkReport> LinksIn(const TraceFacts& facts, const std::vector<HostSpeed>& hosts) {
  const auto place = [&hosts](const std::string& name) {
    const auto found = std::find_if(hosts.begin(), hosts.end(),
                                    [&name](const HostSpeed& host) { return host.name == name; });
    return static_cast<size_t>(found - hosts.begin());
  };
  std::map<int64_t, size_t> host_of;  // by number of the rank
  for (const RankHistory& rank : facts.ranks) host_of[rank.number] = place(rank.host);
  struct Sum {
    uint64_t bytes = 0;
    int64_t busy_ns = 0;
  };
  std::map<std::pair<size_t, size_t>, Sum> sums;
  for (const RankHistory& rank : facts.ranks) {
    for (const LinkFacts& link : rank.links) {
      const auto to = host_of.find(link.to);
      const size_t from = place(rank.host);
      if (to == host_of.end() || from == to->second) continue;
      if (from >= hosts.size() || to->second >= hosts.size()) continue;
      Sum& sum = sums[{from, to->second}];
      sum.bytes += link.bytes;
      sum.busy_ns += link.busy_ns;
    }
  }
  std::vector<LinkReport> links;
  for (const auto& [ends, sum] : sums) {
    if (sum.busy_ns <= 0) continue;
    const double speed = static_cast<double>(sum.bytes) * 1e9 / static_cast<double>(sum.busy_ns);
    links.push_back({ends.first, ends.second, sum.bytes, speed});
  }
  return links;
}

std::optional<SlowLinks> FindSlowLinks(const std::vector<LinkReport>& links) {
  if (std::optional<SlowLinks> host = SlowHost(links)) return host;
  const auto slowest =
      std::min_element(links.begin(), links.end(), [](const LinkReport& a, const LinkReport& b) {
        return a.bytes_per_second < b.bytes_per_second;
      });
  const double median = MedianSpeed(links);
  if (links.size() <= kFewest || slowest->bytes_per_second >= kSlow * median) return std::nullopt;
  return SlowLinks{std::nullopt, *slowest, slowest->bytes_per_second, median};
}

}  // namespace hvd
