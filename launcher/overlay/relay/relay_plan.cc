#include "launcher/overlay/relay/relay_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "launcher/wire/probe_partners.h"
#include "runtime/base/text/format.h"
#include "runtime/net/mesh/mesh_connector.h"

namespace hvd {
namespace {

constexpr size_t kMostNamed = 4;  // pairs of hosts in the warning

bool Blocked(const std::vector<BlockedRoute>& routes, uint32_t from, uint32_t to) {
  return std::any_of(routes.begin(), routes.end(),
                     [&](const BlockedRoute& w) { return w.from == from && w.to == to; });
}

// The caller states the advice once.
std::string WithoutAdvice(const std::string& why) { return why.substr(0, why.find(kReachAdvice)); }

std::string Number(double value) { return Format("{:.{}f}", value, value < 9.95 ? 1 : 0); }

std::string Enumerate(std::vector<std::string> items) {
  const size_t more = items.size() > kMostNamed ? items.size() - kMostNamed : 0;
  if (more > 0) {
    items.resize(kMostNamed);
    items.push_back(Format("{} more pairs", more));
  }
  std::string text;
  for (size_t i = 0; i < items.size(); ++i)
    text += (i == 0 ? "" : i + 1 == items.size() ? "; and " : "; ") + items[i];
  return text;
}

// "hosts b and c do not reach each other; and host d does not reach host b"
std::string WhoIsBlocked(const std::vector<BlockedRoute>& routes,
                         const std::vector<std::string>& names, size_t hosts) {
  if (hosts > 2 && routes.size() == hosts * (hosts - 1))
    return Format("none of the {} hosts reaches another", hosts);
  std::vector<std::string> parts;
  for (const BlockedRoute& route : routes) {
    const bool both = Blocked(routes, route.to, route.from);
    if (both && route.to < route.from) continue;  // already named
    parts.push_back(both ? "hosts " + names[route.from] + " and " + names[route.to] +
                               " do not reach each other"
                         : "host " + names[route.from] + " does not reach host " + names[route.to]);
  }
  return Enumerate(std::move(parts));
}

}  // namespace

std::string ReasonNotRelayed(bool allowed, size_t hosts) {
  if (!allowed) return "nothing is relayed because of --relay never";
  if (hosts <= kMostProvenInPairs) return "";
  return Format(
      "with more than {} hosts nothing is relayed through hvdrun, because not every pair of them "
      "was tried",
      kMostProvenInPairs);
}

std::string TroubleOfBlocked(const std::vector<BlockedRoute>& routes, uint32_t host,
                             const std::string& reason) {
  constexpr size_t kMost = 3;
  std::string text;
  size_t count = 0;
  for (const BlockedRoute& route : routes) {
    if (route.from != host || ++count > kMost) continue;
    text += (text.empty() ? "" : "; ") + WithoutAdvice(route.why);
  }
  if (count > kMost) text += Format("; and {} more", count - kMost);
  return text + std::string(kReachAdvice) + "; " + reason;
}

std::string RelayWarning(const std::vector<BlockedRoute>& routes,
                         const std::vector<std::string>& names, size_t hosts) {
  double speed = 0;
  std::vector<int64_t> latencies;  // routes measured at the same time slow each other down
  for (const BlockedRoute& route : routes) {
    const double ns = static_cast<double>(std::max<int64_t>(1, route.speed.elapsed_ns));
    speed += static_cast<double>(route.speed.bytes) / ns * 1e3;  // bytes per microsecond: MB/s
    latencies.push_back(route.speed.latency_ns);
  }
  std::sort(latencies.begin(), latencies.end());
  const double latency_ms = static_cast<double>(latencies[latencies.size() / 2]) / 1e6;
  return WhoIsBlocked(routes, names, hosts) +
         ". The data of their ranks go through this machine, at " + Number(speed) +
         " MB/s in all (measured; " + Number(latency_ms) + " ms there and back). Host " +
         names[routes[0].from] + " says: " + WithoutAdvice(routes[0].why) +
         ". To make it faster let the hosts connect to each other: --port-range 40000-40999 and a "
         "rule of the firewall for these ports. Connections that programs make by themselves "
         "(torch.distributed) are not relayed";
}

}  // namespace hvd
