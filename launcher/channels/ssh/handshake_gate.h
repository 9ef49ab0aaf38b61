// How many logins may be under way at one sshd. It drops connections that are not logged in yet
// when there are too many (MaxStartups, 10 by default). So hvdrun stays below that number, and
// tries again where others have reached it. Pure; one thread.
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
  // The login is over, or is not wanted any more. Returns the tickets whose turn it is now.
  std::vector<Ticket> Leave(const std::string& address, Ticket ticket);
  // The server at the address dropped one: half as many at a time from now on.
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

// When to try one host again after refusals: 0.1 s, 0.2 s ... 2 s later, each time up to half as
// much more or less.
class RefusalPatience {
 public:
  explicit RefusalPatience(Duration limit = std::chrono::seconds(25)) : limit_(limit) {}

  // `chance`, from 0 to 1, is the jitter. Nothing: it has been going on for too long.
  std::optional<Duration> OnRefusal(TimePoint now, double chance);
  int refusals() const { return refusals_; }

 private:
  Duration limit_;
  std::optional<TimePoint> first_;
  int refusals_ = 0;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_HANDSHAKE_GATE_H_
