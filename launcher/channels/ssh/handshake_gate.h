// Limits concurrent logins at one sshd, which drops unauthenticated connections above MaxStartups
// (10 by default). hvdrun stays below that, and retries if other clients have reached it. Pure; one
// thread.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_HANDSHAKE_GATE_H_
#define HVD_LAUNCHER_CHANNELS_SSH_HANDSHAKE_GATE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/clock.h"

namespace hvd {

class HandshakeGate {
 public:
  using Ticket = uint64_t;
  static constexpr size_t kWidth = 8;

  explicit HandshakeGate(size_t width = kWidth) : width_(width) {}

  // True: begin now. False: the ticket waits until a Leave returns it.
  bool Enter(const std::string& address, Ticket ticket);
  // The login is complete or cancelled. Returns the tickets that may begin now.
  std::vector<Ticket> Leave(const std::string& address, Ticket ticket);
  // The server dropped a connection: halves its limit.
  void NoteRefusal(const std::string& address);

 private:
  struct Server {
    size_t most = 0;  // logins at a time
    std::set<Ticket> logging_in;
    std::deque<Ticket> waiting;
  };
  Server& ServerAt(const std::string& address);

  size_t width_;
  std::map<std::string, Server> servers_;
};

// Backoff after refusals by one host: 0.1 s, 0.2 s ... 2 s, each with jitter of up to +-50 %.
class RefusalPatience {
 public:
  explicit RefusalPatience(Duration limit = std::chrono::seconds(25)) : limit_(limit) {}

  // `chance`, 0 to 1: the jitter. Nothing: the limit has passed; give up.
  std::optional<Duration> OnRefusal(TimePoint now, double chance);
  int refusals() const { return refusals_; }

 private:
  Duration limit_;
  std::optional<TimePoint> first_;
  int refusals_ = 0;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_HANDSHAKE_GATE_H_
