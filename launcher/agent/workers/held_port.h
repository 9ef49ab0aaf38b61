// The port that MASTER_PORT names: held for a server that rank 0 may start, and watched until that
// server listens.
#ifndef HVD_LAUNCHER_AGENT_WORKERS_HELD_PORT_H_
#define HVD_LAUNCHER_AGENT_WORKERS_HELD_PORT_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/unique_fd.h"

namespace hvd {

// Reserves a port for the lifetime of this object: the kernel assigns it to no one else.
class HeldPort {
 public:
  // Of the loopback address, or of all addresses.
  explicit HeldPort(bool everywhere);

  uint32_t port() const { return port_; }  // 0: none could be had
  // From now on a server with SO_REUSEADDR, as nearly all have, may listen at the port, of any
  // user: the kernel makes no difference. Until then none may.
  void LetServersListen();

 private:
  UniqueFd socket_;
  uint32_t port_ = 0;
};

// The user whose server gets connections to this numeric address and port; nothing when there is
// none. `table` is the text of /proc/net/tcp or /proc/net/tcp6. Pure.
std::optional<uid_t> ListenerIn(std::string_view table, const std::string& address, uint32_t port);

// The same of this machine, over both tables.
std::optional<uid_t> ListenerAt(const std::string& address, uint32_t port);

// Whether a process of `user` is connected to this port of the numeric address, or of any address
// of this machine itself. Of a name that is no numeric address the port alone counts. Connections
// whose owner the kernel no longer records (TIME_WAIT and the like) do not count: any user could
// have left them. Pure.
bool ConnectionIn(std::string_view table, const std::string& address, uint32_t port, uid_t user);

// The same of this machine, over both tables.
bool ConnectedTo(const std::string& address, uint32_t port, uid_t user);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_WORKERS_HELD_PORT_H_
