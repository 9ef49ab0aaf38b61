#include "launcher/driver/network_settings.h"

#include <algorithm>
#include <sstream>

#include "configs/message_text.h"
#include "runtime/base/text/number_text.h"
#include "runtime/net/address_range.h"

namespace hvd {
namespace {

Result<uint16_t> ParsePort(std::string_view text, std::string_view range) {
  if (const auto port = ParseWhole<uint16_t>(text); port && *port > 0) return *port;
  return InvalidArgument("--port-range " + Quoted(range) +
                         " is no range of ports; try --port-range 40000-40999");
}

constexpr Duration kUnknownName = std::chrono::seconds(3);  // usually a misspelt name

// In a cluster where pods start in any order, names and servers may appear minutes later.
constexpr Duration kLatePods = std::chrono::minutes(10);
constexpr double kStartSeconds = 30;  // the default of --start-timeout

// An agent that was started greets within the start timeout, unless a limit is set for that stage.
Result<StageLimits> LimitsOf(const Settings& settings, bool hosts_come_late) {
  Result<StageLimits> limits = StageLimits::Parse(settings.stage_timeouts);
  if (!limits.ok()) return limits;
  const auto is_set = [&](const char* stage) {
    return settings.stage_timeouts.find(stage) != std::string::npos;
  };
  const auto start = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(settings.start_timeout_seconds));
  const Duration late = settings.start_timeout_seconds == kStartSeconds ? kLatePods : start;
  if (!hosts_come_late && !is_set("resolve=")) limits->unknown_name = kUnknownName;
  if (hosts_come_late && !is_set("resolve=")) limits->at(HostStage::kResolve) = late;
  if (hosts_come_late && !is_set("connect=")) limits->at(HostStage::kConnect) = late;
  if (!is_set("hello=")) limits->at(HostStage::kHello) = start;
  return limits;
}

}  // namespace

Result<PortRange> ParsePortRange(std::string_view text) {
  if (text.empty()) return PortRange{};
  size_t dash = std::min(text.find('-'), text.size());
  Result<uint16_t> first = ParsePort(text.substr(0, dash), text);
  if (!first.ok()) return first.status();
  Result<uint16_t> last = dash == text.size() ? first : ParsePort(text.substr(dash + 1), text);
  if (!last.ok()) return last.status();
  if (*last < *first) return ParsePort("", text).status();
  return PortRange{*first, *last};
}

Result<NetworkSettings> ReadNetwork(const Settings& settings, bool hosts_come_late) {
  NetworkSettings network;
  Result<PortRange> ports = ParsePortRange(settings.port_range);
  if (!ports.ok()) return ports.status();
  network.ports = *ports;
  Result<StageLimits> limits = LimitsOf(settings, hosts_come_late);
  if (!limits.ok()) return limits.status();
  network.stage_limits = *limits;
  std::istringstream names(settings.network_interfaces);
  for (std::string name; std::getline(names, name, ',');) {
    if (Result<AddressRange> range = ParseAddressRange(name); LooksLikeRange(name) && !range.ok())
      return InvalidArgument("--network-interfaces: " + range.status().message());
    network.interfaces.push_back(name);
  }
  return network;
}

}  // namespace hvd
