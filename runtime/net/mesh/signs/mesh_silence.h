// When a peer that has not said goodbye counts as lost: not if its process moves nothing, because
// the kernel of a stopped or computing process still acknowledges, but if its kernel no longer
// answers on any connection of the pair.
//
// So TCP_USER_TIMEOUT is of no use here: it also ends a connection whose peer keeps its window
// closed, as the kernel of a stopped process does once its buffers are full.
#ifndef HVD_RUNTIME_NET_MESH_SIGNS_MESH_SILENCE_H_
#define HVD_RUNTIME_NET_MESH_SIGNS_MESH_SILENCE_H_

#include <cstdint>
#include <span>

#include "runtime/base/clock.h"

namespace hvd {

// From the first on a silence is reported; from the second on the peer is lost.
inline constexpr Duration kReportedSilence = std::chrono::seconds(3);
inline constexpr Duration kSilenceLost = std::chrono::seconds(30);
// How often to check.
inline constexpr Duration kSilenceLook = std::chrono::seconds(1);

// What the kernel knows about one connection.
struct ConnectionSigns {
  Duration quiet{};         // since anything came from the other side: data or an acknowledgement
  uint32_t unanswered = 0;  // retransmissions, keep-alives and window probes since then
};

// How long the other side of a pair has been silent: since it was last heard on any connection, if
// one has probed it repeatedly since; otherwise zero. One or two lost packets are no silence. Pure.
Duration SilenceOf(std::span<const ConnectionSigns> connections);

// Queries the kernel. A socket that is not TCP counts as heard just now.
ConnectionSigns SignsOf(int socket);

struct MeshSilence {
  uint32_t rank = 0;
  Duration silent{};
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_SIGNS_MESH_SILENCE_H_
