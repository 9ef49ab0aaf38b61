// RelaySwitch: the driver's part of connections between ranks whose hosts do not reach each other.
// Each goes from a rank to its agent, to the driver, to the agent of the other host, to the other
// rank; the switch knows which two hosts a connection joins and passes on what comes from one of
// them to the other. It looks at no byte of them.
//
// Bounded: the agents keep at most kRelayWindow bytes of a connection and direction on the way, and
// the switch checks it. Pure: one thread, that of the driver.
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
  using Teller = std::function<void(uint32_t host, const ToAgent& message)>;
  static constexpr size_t kMostConnections = 8192;

  explicit RelaySwitch(Teller tell) : tell_(std::move(tell)) {}

  // Ranks of `from` may connect to ranks of `to`.
  void Allow(uint32_t from, uint32_t to) { routes_.emplace(from, to); }

  // Takes a message from the agent of `host`. Not ok: it does what no agent does, in a sentence for
  // AgentConnection::Break. Of a connection that is over nothing more is passed on.
  Status Take(uint32_t host, const RelayOpen& open);
  Status Take(uint32_t host, const RelayData& data);
  Status Take(uint32_t host, const RelayClose& close);
  Status Take(uint32_t host, const RelayCredit& credit);
  // All its connections end at their other ends.
  void HostGone(uint32_t host);

  size_t connections() const { return connections_.size(); }

 private:
  struct Connection {
    std::array<uint32_t, 2> hosts;  // who opened it, and whom to
    std::array<uint64_t, 2>
        in_flight{};  // bytes by sender, that the other has not returned as credit
  };

  // nullptr: it is over, or not that host's.
  Connection* Find(uint32_t host, uint64_t id);

  Teller tell_;
  std::set<std::pair<uint32_t, uint32_t>> routes_;
  std::map<uint64_t, Connection> connections_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_RELAY_RELAY_SWITCH_H_
