#include "runtime/net/mesh/signs/mesh_silence.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace hvd {
namespace {

constexpr uint32_t kAskedEnough = 3;

}  // namespace

Duration SilenceOf(std::span<const ConnectionSigns> connections) {
  Duration quiet = Duration::max();
  bool asked = false;
  for (const ConnectionSigns& signs : connections) {
    quiet = std::min(quiet, signs.quiet);
    asked = asked || signs.unanswered >= kAskedEnough;
  }
  return asked ? quiet : Duration::zero();
}

ConnectionSigns SignsOf(int socket) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return {};
  const uint32_t quiet_ms = std::min(info.tcpi_last_data_recv, info.tcpi_last_ack_recv);
  return {std::chrono::milliseconds(quiet_ms),
          uint32_t{info.tcpi_retransmits} + uint32_t{info.tcpi_probes}};
}

}  // namespace hvd
