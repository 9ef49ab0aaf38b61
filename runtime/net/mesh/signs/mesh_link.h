// The kernel's knowledge of how fast bytes went from this process to a peer, and how far it is.
#ifndef HVD_RUNTIME_NET_MESH_SIGNS_MESH_LINK_H_
#define HVD_RUNTIME_NET_MESH_SIGNS_MESH_LINK_H_

#include <cstdint>

namespace hvd {

// Bytes and time are sums over the life of a connection.
struct MeshLink {
  uint32_t rank = 0;   // the peer
  uint64_t bytes = 0;  // that it has acknowledged
  // In which there was something to send and the peer had room for it, in microseconds.
  uint64_t busy_us = 0;
  uint64_t round_trip_us = 0;  // the least in the last minutes; 0: not known
};

// Asks the kernel (tcp_info). Nothing is known of a socket that is no TCP connection, or by a
// kernel before 4.10.
MeshLink LinkOver(int socket, uint32_t rank);

// The acknowledgement of all that this connection has brought goes out, and does not wait for data
// to go with: for the peer's kernel the link is busy until it arrives.
void AcknowledgeNow(int socket);

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_SIGNS_MESH_LINK_H_
