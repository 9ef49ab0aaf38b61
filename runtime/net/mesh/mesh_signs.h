// What the kernel knows about the peers of a mesh: how fast bytes go to them, and whether they
// still answer. MeshSigns keeps the last observation for any thread.
#ifndef HVD_RUNTIME_NET_MESH_MESH_SIGNS_H_
#define HVD_RUNTIME_NET_MESH_MESH_SIGNS_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace hvd {

// Bytes and time are totals over the life of a connection.
struct MeshLink {
  uint32_t rank = 0;   // the peer
  uint64_t bytes = 0;  // acknowledged by the peer
  // Time with something to send and room at the peer, in microseconds.
  uint64_t busy_us = 0;
  uint64_t round_trip_us = 0;  // the minimum of the last minutes; 0: unknown
};

// Queries the kernel (tcp_info). Nothing is known for other than TCP sockets, or before kernel
// 4.10.
MeshLink LinkOver(int socket, uint32_t rank);

// Acknowledges everything received on this connection now, without waiting for data to carry it: to
// the peer's kernel the link is busy until then.
void AcknowledgeNow(int socket);

// When a peer that has not said goodbye counts as lost: not if its process moves nothing, because
// the kernel of a stopped or computing process still acknowledges, but if its kernel no longer
// answers on any connection of the pair.
//
// So TCP_USER_TIMEOUT is of no use here: it also ends a connection whose peer keeps its window
// closed, as the kernel of a stopped process does once its buffers are full.

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

// What a mesh last observed about its peers. From any thread, without waiting for the thread that
// drives the mesh.
class MeshSigns {
 public:
  void Put(std::vector<MeshSilence> silences, std::vector<MeshLink> links) {
    MutexLock lock(mutex_);
    silences_ = std::move(silences);
    links_ = std::move(links);
  }
  std::vector<MeshSilence> Silences() const {
    MutexLock lock(mutex_);
    return silences_;
  }
  std::vector<MeshLink> Links() const {
    MutexLock lock(mutex_);
    return links_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<MeshSilence> silences_ HVD_GUARDED_BY(mutex_);
  std::vector<MeshLink> links_ HVD_GUARDED_BY(mutex_);
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_MESH_SIGNS_H_
