// RelaySwitch: the driver's part of connections between ranks whose hosts do not reach each other.
// Each goes from a rank to its agent, to the driver, to the agent of the other host, to the other
// rank; the switch knows the two hosts of a connection and forwards bytes between them without
// looking at them.
//
// Bounded: agents keep at most kRelayWindow bytes per connection and direction in flight, which the
// switch enforces. Pure: one thread, that of the driver.
#ifndef HVD_LAUNCHER_OVERLAY_RELAY_RELAY_SWITCH_H_
#define HVD_LAUNCHER_OVERLAY_RELAY_RELAY_SWITCH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "launcher/wire/messages.h"
#include "runtime/base/status.h"

namespace hvd {

class RelaySwitch {
 public:
  using Send = std::function<void(uint32_t host, const ToAgent& message)>;
  static constexpr size_t kMostConnections = 8192;

  explicit RelaySwitch(Send send) : send_(std::move(send)) {}

  // Ranks of `from` may connect to ranks of `to`.
  void Allow(uint32_t from, uint32_t to) { routes_.emplace(from, to); }

  // Handles a message from the agent of `host`. Not ok: a protocol violation, as a sentence for
  // AgentConnection::Break. Data of a closed connection is dropped.
  Status Handle(uint32_t host, const RelayOpen& open);
  Status Handle(uint32_t host, const RelayData& data);
  Status Handle(uint32_t host, const RelayClose& close);
  Status Handle(uint32_t host, const RelayCredit& credit);
  // Closes the other ends of all its connections.
  void HostGone(uint32_t host);

  size_t connections() const { return connections_.size(); }

 private:
  struct Connection {
    std::array<uint32_t, 2> hosts;        // opener and target
    std::array<uint64_t, 2> in_flight{};  // by sender: bytes not yet returned as credit
  };

  // nullptr: it is closed, or not that host's.
  Connection* Find(uint32_t host, uint64_t id);

  Send send_;
  std::set<std::pair<uint32_t, uint32_t>> routes_;
  std::map<uint64_t, Connection> connections_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_RELAY_RELAY_SWITCH_H_
