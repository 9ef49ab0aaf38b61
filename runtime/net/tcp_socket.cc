#include "runtime/net/tcp_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace hvd {
namespace {

void Set(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

}  // namespace

void PrepareTcp(int socket, const SilenceLimits& limits) {
  Set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  Set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  Set(socket, IPPROTO_TCP, TCP_KEEPIDLE, limits.idle_s);
  Set(socket, IPPROTO_TCP, TCP_KEEPINTVL, limits.interval_s);
  Set(socket, IPPROTO_TCP, TCP_KEEPCNT, limits.probes);
  Set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, limits.sending_ms);
}

}  // namespace hvd
