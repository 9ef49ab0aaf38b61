#include "launcher/driver/stock_worlds.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "configs/message_text.h"
#include "runtime/net/mesh/mesh_address.h"

namespace hvd {
namespace {

// An unassigned address (RFC 5737), which is reached by the default route.
constexpr const char* kElsewhere = "192.0.2.1";

bool IsIPv4(const std::string& address) { return address.find(':') == std::string::npos; }

}  // namespace

StockWorlds::StockWorlds(asio::io_context& io, const DriverOptions& options, const Plan& plan,
                         const JobHosts& hosts, AskAddress ask)
    : io_(io),
      options_(options),
      plan_(plan),
      hosts_(hosts),
      ask_(std::move(ask)),
      server_(io, options.first_port, options.last_port, options.policy.most_workers()) {}

void StockWorlds::Learn(uint32_t host, std::function<void()> then) {
  const std::string& name = hosts_[host].target;
  if (!hosts_[host].remote || own_.contains(name) || !OwnAddressTowardsNumeric(name).empty())
    return then();
  const auto answer = std::make_shared<std::string>();
  questions_.try_emplace(host, io_).first->second.Ask(
      [ask = ask_, name, answer] { *answer = ask(name); },
      [this, name, answer, then = std::move(then)] {
        if (!answer->empty()) own_[name] = std::move(*answer);
        then();
      });
}

Status StockWorlds::Begin(const std::vector<Placement>& places) {
  std::vector<StockSlot> slots;
  std::set<uint32_t> hosts;
  for (const Placement& place : places) {
    slots.push_back({plan_.hosts[place.host], place});
    hosts.insert(place.host);
  }
  addresses_.clear();
  for (uint32_t host : hosts) {
    const Result<std::string> own = OwnAddress(places, host);
    if (!own.ok()) return own.status();
    Result<std::string> address = server_.ListenAt(*own);
    if (!address.ok()) return address.status();
    addresses_[host] = std::move(*address);
  }
  server_.rendezvous().Begin(slots);
  return Status::Ok();
}

std::string StockWorlds::AddressFor(uint32_t host) const {
  const auto found = addresses_.find(host);
  return found == addresses_.end() ? "" : found->second;
}

// How to reach the host: an address at which another host reached it, else its name.
std::string StockWorlds::TargetOn(uint32_t host) const {
  for (const std::string& address : hosts_[host].addresses) {
    if (IsIPv4(address) && address != kLoopbackAddress) return address;
  }
  return hosts_[host].target;
}

// Workers on this machine use the same address of it as workers on others.
Result<std::string> StockWorlds::OwnAddress(const std::vector<Placement>& places, uint32_t host) {
  const auto remote = [this](const Placement& place) { return hosts_[place.host].remote; };
  const auto other = std::find_if(places.begin(), places.end(), remote);
  if (other == places.end()) return std::string(kLoopbackAddress);
  if (!options_.interfaces.empty()) {
    const Result<std::vector<std::string>> addresses = AddressesOfInterfaces(options_.interfaces);
    if (!addresses.ok()) return addresses.status();
    const auto found = std::find_if(addresses->begin(), addresses->end(), IsIPv4);
    if (found != addresses->end()) return *found;
  }
  const std::string target = TargetOn(hosts_[host].remote ? host : other->host);
  std::string own = OwnAddressTowardsNumeric(target);
  if (const auto known = own_.find(target); own.empty() && known != own_.end()) own = known->second;
  if (own.empty()) own = OwnAddressTowardsNumeric(kElsewhere);
  if (!own.empty()) return own;
  return Aborted("no IPv4 address of this machine leads to host " + Printable(target) +
                 ", and stock Horovod knows no other addresses; --network-interfaces names one");
}

std::string StockWorlds::PopNotice() {
  if (std::exchange(notice_popped_, true)) return "";
  const std::string elastic =
      options_.policy.ranks_change
          ? "; running workers are not told of hosts that are added: where ranks come or go, all "
            "workers are started again"
          : "";
  return "workers of stock Horovod meet at " + server_.AddressesText() +
         ": its protocol has no authentication, so whoever reaches that port can disturb the job" +
         elastic;
}

}  // namespace hvd
