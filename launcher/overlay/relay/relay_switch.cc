#include "launcher/overlay/relay/relay_switch.h"

namespace hvd {

Status RelaySwitch::Handle(uint32_t host, const RelayOpen& open) {
  if (open.id >> 32 != host || connections_.count(open.id) > 0)
    return InvalidArgument("its agent gave a relayed connection a wrong number");
  if (routes_.count({host, open.host}) == 0)
    return InvalidArgument("its agent wants to relay to a host that it was not told to");
  if (connections_.size() >= kMostConnections) {
    send_(host, RelayClose{open.id});
    return Status::Ok();
  }
  connections_[open.id].hosts = {host, open.host};
  send_(open.host, open);
  return Status::Ok();
}

RelaySwitch::Connection* RelaySwitch::Find(uint32_t host, uint64_t id) {
  auto at = connections_.find(id);
  if (at == connections_.end()) return nullptr;
  const auto& [opener, other] = at->second.hosts;
  return host == opener || host == other ? &at->second : nullptr;
}

Status RelaySwitch::Handle(uint32_t host, const RelayData& data) {
  Connection* connection = Find(host, data.id);
  if (connection == nullptr) return Status::Ok();
  const size_t side = host == connection->hosts[0] ? 0 : 1;
  connection->in_flight[side] += data.bytes.size();
  if (connection->in_flight[side] > kRelayWindow)
    return InvalidArgument("its agent relays more than it was given credit for");
  send_(connection->hosts[1 - side], data);
  return Status::Ok();
}

Status RelaySwitch::Handle(uint32_t host, const RelayCredit& credit) {
  Connection* connection = Find(host, credit.id);
  if (connection == nullptr) return Status::Ok();
  const size_t sender = host == connection->hosts[0] ? 1 : 0;
  if (credit.bytes > connection->in_flight[sender])
    return InvalidArgument("its agent returns credit for what it did not get");
  connection->in_flight[sender] -= credit.bytes;
  send_(connection->hosts[sender], credit);
  return Status::Ok();
}

Status RelaySwitch::Handle(uint32_t host, const RelayClose& close) {
  Connection* connection = Find(host, close.id);
  if (connection == nullptr) return Status::Ok();
  const uint32_t other = connection->hosts[host == connection->hosts[0] ? 1 : 0];
  connections_.erase(close.id);
  send_(other, close);
  return Status::Ok();
}

void RelaySwitch::HostGone(uint32_t host) {
  for (auto at = connections_.begin(); at != connections_.end();) {
    auto here = at++;
    const auto [opener, other] = here->second.hosts;
    if (host != opener && host != other) continue;
    const uint64_t id = here->first;
    connections_.erase(here);
    send_(host == opener ? other : opener, RelayClose{id});
  }
}

}  // namespace hvd
