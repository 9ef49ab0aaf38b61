// When is a peer gone that has not said so? Not when its process moves nothing: a stopped process,
// or one that computes, has a kernel that goes on acknowledging. Gone is a peer whose kernel
// answers nothing any more, on no connection of the pair.
//
// So TCP_USER_TIMEOUT is of no use here: it also ends a connection whose peer keeps its window
// shut, which is what the kernel of a stopped process does once its buffers are full.
#ifndef HVD_RUNTIME_NET_MESH_SIGNS_MESH_SILENCE_H_
#define HVD_RUNTIME_NET_MESH_SIGNS_MESH_SILENCE_H_

#include <cstdint>
#include <span>

#include "runtime/base/clock.h"

namespace hvd {

// From here on a silence is worth telling; from there on the peer is lost.
inline constexpr Duration kReportedSilence = std::chrono::seconds(3);
inline constexpr Duration kSilenceLost = std::chrono::seconds(30);
// How often to look.
inline constexpr Duration kSilenceLook = std::chrono::seconds(1);

// The kernel's knowledge of one connection.
struct ConnectionSigns {
  Duration quiet{};         // since anything came from the other side: data or an acknowledgement
  uint32_t unanswered = 0;  // segments sent again, keep-alives and window probes since then
};

// How long the other side of a pair has been silent: since it was last heard on any connection, if
// one of them has asked again and again since; otherwise zero. A single lost packet, or two, make
// no silence. Pure.
Duration SilenceOf(std::span<const ConnectionSigns> connections);

// Asks the kernel. Nothing is known of a socket that is no TCP connection: it was heard just now.
ConnectionSigns SignsOf(int socket);

struct MeshSilence {
  uint32_t rank = 0;
  Duration silent{};
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_SIGNS_MESH_SILENCE_H_
