// MasterPort: the port of MASTER_PORT on rank 0's host. Held until rank 0 may listen there, and
// watched until it does: a server of another user would receive what the ranks send to rank 0.
#ifndef HVD_LAUNCHER_AGENT_WORKERS_MASTER_PORT_H_
#define HVD_LAUNCHER_AGENT_WORKERS_MASTER_PORT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "launcher/agent/workers/held_port.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"

namespace hvd {

class MasterPort {
 public:
  // A script imports and loads before it listens; one that never does is not watched for ever.
  static constexpr Duration kWatch = std::chrono::minutes(2);

  // As ListenerAt.
  using FindListener = std::function<std::optional<uid_t>(const std::string& address, uint32_t)>;
  explicit MasterPort(FindListener listener_at = ListenerAt)
      : listener_at_(std::move(listener_at)) {}

  uint32_t port() const { return port_.port(); }
  // From now on servers may listen, of any user: the kernel makes no difference. The port is
  // watched if rank 0 is here and the user's environment names no other one.
  void Open(const StartJob& start, TimePoint now);
  // Call now and then; returns the text to report when another user has the port.
  std::optional<WorkerNotStarted> Look(const StartJob& start, TimePoint now);

 private:
  const FindListener listener_at_;
  HeldPort port_{/*everywhere=*/true};
  std::optional<TimePoint> watched_until_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_WORKERS_MASTER_PORT_H_
