// What the kernel knows about a link to a peer: throughput and round trip.
#ifndef HVD_RUNTIME_NET_MESH_SIGNS_MESH_LINK_H_
#define HVD_RUNTIME_NET_MESH_SIGNS_MESH_LINK_H_

#include <cstdint>

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

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_SIGNS_MESH_LINK_H_
