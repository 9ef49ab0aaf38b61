// MasterPort: the port of MASTER_PORT on rank 0's host. Held until rank 0 may listen there, and
// watched until it does: a server of another user would receive what the ranks send to rank 0.
// Any user may listen there, so that alone causes a warning only; the job ends once one of its
// ranks is connected to such a server.
#ifndef HVD_LAUNCHER_AGENT_WORKERS_MASTER_PORT_H_
#define HVD_LAUNCHER_AGENT_WORKERS_MASTER_PORT_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "launcher/agent/workers/held_port.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"

namespace hvd {

// The sockets of this machine, as the kernel lists them.
struct SocketTables {
  std::function<std::optional<uid_t>(const std::string& address, uint32_t port)> listener_at =
      ListenerAt;
  std::function<bool(const std::string& address, uint32_t port, uid_t)> connected_to = ConnectedTo;
};

class MasterPort {
 public:
  // A script imports and loads before it listens. After this long the port is no longer watched.
  static constexpr Duration kWatch = std::chrono::minutes(2);

  using Send = std::function<void(const ToDriver& message)>;
  explicit MasterPort(Send send, SocketTables tables = {})
      : send_(std::move(send)), tables_(std::move(tables)) {}

  uint32_t port() const { return port_.port(); }
  // From now on servers may listen, of any user: the kernel makes no difference. The port is
  // watched if rank 0 is here and the user's environment names no other one.
  void Open(const StartJob& start, TimePoint now);
  // Rank 0's agent found this server of another user; ranks of this host are not to use it.
  void Handle(const MasterPortTaken& taken) { stranger_ = taken; }
  // Call periodically.
  void Look(const StartJob& start, TimePoint now);

 private:
  void LookForListener(const StartJob& start, TimePoint now);

  const Send send_;
  const SocketTables tables_;
  HeldPort port_{/*everywhere=*/true};
  std::optional<TimePoint> watched_until_;
  std::optional<MasterPortTaken> stranger_;  // until a rank of this host is connected there
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_WORKERS_MASTER_PORT_H_
