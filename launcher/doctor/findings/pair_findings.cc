#include "launcher/doctor/findings/pair_findings.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "launcher/doctor/report/doctor_text.h"
#include "launcher/output/text/phrases.h"
#include "runtime/base/quantile.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

using Pairs = std::vector<const PairReport*>;

struct PairMedians {
  Duration latency{};
  double speed = 0;
};

PairMedians MediansOf(const std::vector<PairReport>& pairs) {
  std::vector<Duration> latencies;
  std::vector<double> speeds;
  for (const PairReport& pair : pairs) {
    if (pair.latency > Duration::zero()) latencies.push_back(pair.latency);
    if (pair.a_to_b > 0) speeds.push_back(pair.a_to_b);
    if (pair.b_to_a > 0) speeds.push_back(pair.b_to_a);
  }
  return {Median(std::move(latencies)), Median(std::move(speeds))};
}

bool IsLate(const PairReport& pair, const PairMedians& medians, const DoctorLimits& limits) {
  return static_cast<double>(pair.latency.count()) >
             static_cast<double>(medians.latency.count()) * limits.slow_latency &&
         pair.latency > medians.latency + limits.slow_latency_least;
}

bool IsSlow(const PairReport& pair, const PairMedians& medians, const DoctorLimits& limits) {
  const double least = std::min(pair.a_to_b, pair.b_to_a);
  return least > 0 && least * limits.slow_speed < medians.speed;
}

template <typename PairIs>
Pairs PairsThat(const std::vector<PairReport>& pairs, PairIs pair_is) {
  Pairs found;
  for (const PairReport& pair : pairs) {
    if (pair_is(pair)) found.push_back(&pair);
  }
  return found;
}

// The number of pairs that each host is in.
std::map<uint32_t, size_t> CountByHost(const Pairs& pairs) {
  std::map<uint32_t, size_t> counts;
  for (const PairReport* pair : pairs) {
    ++counts[pair->a];
    ++counts[pair->b];
  }
  return counts;
}

Pairs PointersTo(const std::vector<PairReport>& pairs) {
  return PairsThat(pairs, [](const PairReport&) { return true; });
}

class PairFindingList {
 public:
  explicit PairFindingList(const DoctorReport& report) : report_(report) {}

  void Add(Severity severity, const char* kind, const Pairs& bad,
           const std::function<std::string(const PairReport&)>& say, const std::string& fix) {
    const std::set<uint32_t> common = HostsInCommon(report_.pairs, bad);
    for (uint32_t host : common) {
      findings_.push_back({severity, kind, {NameOf(host)}, CommonText(host, bad, say), fix});
    }
    for (const PairReport* pair : bad) {
      if (common.contains(pair->a) || common.contains(pair->b)) continue;
      findings_.push_back({severity,
                           kind,
                           {NameOf(pair->a), NameOf(pair->b)},
                           "the way between them: " + say(*pair),
                           fix});
    }
  }
  const std::string& NameOf(uint32_t host) const { return report_.hosts[host].name; }
  std::vector<Finding> Release() { return std::move(findings_); }

 private:
  std::string CommonText(uint32_t host, const Pairs& bad,
                         const std::function<std::string(const PairReport&)>& say) const {
    const PairReport& example = **std::ranges::find_if(
        bad, [&](const PairReport* pair) { return pair->a == host || pair->b == host; });
    return Format("is common to {} bad pairs of {}; with {}: {}", CountByHost(bad)[host],
                  CountByHost(PointersTo(report_.pairs))[host],
                  NameOf(example.a == host ? example.b : example.a), say(example));
  }

  const DoctorReport& report_;
  std::vector<Finding> findings_;
};

}  // namespace

std::set<uint32_t> HostsInCommon(const std::vector<PairReport>& all,
                                 const std::vector<const PairReport*>& bad) {
  std::set<uint32_t> common;
  if (all.size() < 2 || bad.size() < 2) return common;
  std::map<uint32_t, size_t> bad_of = CountByHost(bad), all_of = CountByHost(PointersTo(all));
  size_t most = 0;
  for (const auto& [host, count] : bad_of) {
    if (2 * count <= all_of[host]) continue;
    common.insert(host);
    most = std::max(most, count);
  }
  // Every host has a bad pair with the one to blame; that alone does not make it one to blame.
  std::erase_if(common, [&](uint32_t host) { return 2 * bad_of[host] <= most; });
  return common;
}

std::vector<Finding> PairFindings(const DoctorReport& report, const DoctorLimits& limits) {
  const PairMedians medians = MediansOf(report.pairs);
  PairFindingList list(report);
  list.Add(
      Severity::kError, "path",
      PairsThat(report.pairs,
                [&](const PairReport& pair) {
                  const bool reported = !report.hosts[pair.a].trouble.empty() ||
                                        !report.hosts[pair.b].trouble.empty();
                  return !pair.trouble.empty() && !reported;
                }),
      [](const PairReport& pair) { return pair.trouble; },
      "look at the network between them, and at firewalls; --network-interfaces takes another "
      "way");
  list.Add(
      Severity::kWarning, "latency",
      PairsThat(report.pairs,
                [&](const PairReport& pair) {
                  return pair.trouble.empty() && IsLate(pair, medians, limits);
                }),
      [&](const PairReport& pair) {
        return "a message takes " + TimeText(pair.latency) +
               " there and back, where the median is " + TimeText(medians.latency);
      },
      "is it another rack, a busy host, or another network? --network-interfaces chooses");
  list.Add(
      Severity::kWarning, "speed",
      PairsThat(report.pairs,
                [&](const PairReport& pair) {
                  return pair.trouble.empty() && IsSlow(pair, medians, limits);
                }),
      [&](const PairReport& pair) {
        const bool a_sends = pair.a_to_b <= pair.b_to_a;
        return SpeedText(std::min(pair.a_to_b, pair.b_to_a)) + " from " +
               list.NameOf(a_sends ? pair.a : pair.b) + " to " +
               list.NameOf(a_sends ? pair.b : pair.a) + ", where the median is " +
               SpeedText(medians.speed);
      },
      "look at its cable, duplex and errors (ip -s link, ethtool), or leave it out: the slowest "
      "way sets the pace of all");
  return list.Release();
}

}  // namespace hvd
