#include "runtime/net/mesh/mesh_signs.h"

#include <linux/tcp.h>  // the tcp_info of <netinet/tcp.h> ends before the needed fields
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>

namespace hvd {
namespace {

constexpr uint32_t kAskedEnough = 3;

}  // namespace

MeshLink LinkOver(int socket, uint32_t rank) {
  tcp_info info{};
  socklen_t length = sizeof info;
  constexpr size_t kNeeded = offsetof(tcp_info, tcpi_rwnd_limited) + sizeof info.tcpi_rwnd_limited;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || length < kNeeded)
    return {.rank = rank};
  const uint64_t limited = info.tcpi_rwnd_limited;
  constexpr uint32_t kNoneYet = ~uint32_t{0};
  return {.rank = rank,
          .bytes = info.tcpi_bytes_acked,
          .busy_us = info.tcpi_busy_time > limited ? info.tcpi_busy_time - limited : 0,
          .round_trip_us = info.tcpi_min_rtt == kNoneYet ? 0 : info.tcpi_min_rtt};
}

void AcknowledgeNow(int socket) {
  const int once = 2;  // even: later ones are delayed again (Linux, tcp_sock_set_quickack)
  ::setsockopt(socket, IPPROTO_TCP, TCP_QUICKACK, &once, sizeof once);
}

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
