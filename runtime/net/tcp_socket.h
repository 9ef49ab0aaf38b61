// The options of every TCP connection of ours.
#ifndef HVD_RUNTIME_NET_TCP_SOCKET_H_
#define HVD_RUNTIME_NET_TCP_SOCKET_H_

namespace hvd {

// How soon a peer whose host is gone is noticed.
struct SilenceLimits {
  int idle_s = 0;      // nothing heard for so long: it is asked
  int interval_s = 0;  // and again
  int probes = 0;      // questions without an answer that end the connection
  int sending_ms = 0;  // what we sent may stay unconfirmed for so long; 0: as the system has it
};

// Small messages go at once, and silence is noticed. A socket that refuses an option goes on
// without it.
void PrepareTcp(int socket, const SilenceLimits& limits);

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_TCP_SOCKET_H_
