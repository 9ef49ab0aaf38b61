// The agent's heartbeat to its warden: a few bytes per second through a pipe. A stopped agent does
// not notice that its driver is gone. The warden, which cannot see the stream to the driver,
// notices when the process that holds the stream on this host ends.
#ifndef HVD_LAUNCHER_AGENT_PULSE_H_
#define HVD_LAUNCHER_AGENT_PULSE_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "runtime/base/clock.h"

namespace hvd {

// Interval at which the agent sends a pulse and the warden checks for one.
inline constexpr Duration kPulseEvery = std::chrono::seconds(1);

struct Pulse {
  // Pid of the `--resume` process that holds the stream; 0: the warden's parent does.
  int32_t bearer = 0;
  uint32_t grace_looks = 0;  // additional checks for which the driver may be away
};

// For the agent. Never blocks; a pulse is dropped when the pipe is full.
void SendPulse(int fd, const Pulse& pulse);

// For the warden. Reads the newest pulse in the pipe, which does not block; `ended`: the agent has
// closed its end.
struct PulseReading {
  std::optional<Pulse> newest;
  bool ended = false;
};
PulseReading OnHeartbeat(int fd);

// Decides when the warden kills the agent: after kMostMissed consecutive checks without a pulse,
// and the grace, while no process holds the stream. Checks are counted, not time: a machine that
// was suspended has missed none. While the process that holds the stream lives, the driver decides:
// the agent may be stopped by a debugger, and the driver by Ctrl-Z. Pure.
class PulseWatch {
 public:
  static constexpr uint32_t kMostMissed = 5;

  void Heard(const Pulse& pulse);
  // No pulse arrived since the last check. True: the agent is to be killed.
  bool Missed(bool bearer_alive);

 private:
  uint32_t missed_ = 0, grace_looks_ = 0;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_PULSE_H_
