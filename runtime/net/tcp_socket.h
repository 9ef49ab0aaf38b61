// The options of every TCP connection of ours.
#ifndef HVD_RUNTIME_NET_TCP_SOCKET_H_
#define HVD_RUNTIME_NET_TCP_SOCKET_H_

namespace hvd {

// How soon the loss of a peer's host is noticed.
struct SilenceLimits {
  int idle_s = 0;      // silence before the first probe
  int interval_s = 0;  // between probes
  int probes = 0;      // unanswered probes that end the connection
  int sending_ms = 0;  // limit for unacknowledged data; 0: the system's default
};

// Disables Nagle's algorithm and enables these limits. If the socket refuses an option, continues
// without it.
void PrepareTcp(int socket, const SilenceLimits& limits);

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_TCP_SOCKET_H_
