// The agent's pulse: a few bytes a second through a pipe to the warden, which cannot see the stream
// to the driver. A stopped agent does not notice that its driver is gone; the warden does, by the
// process that holds the stream on this host.
#ifndef HVD_LAUNCHER_AGENT_PULSE_H_
#define HVD_LAUNCHER_AGENT_PULSE_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "runtime/base/clock.h"

namespace hvd {

// How often the agent shows that it lives, and how often the warden looks.
inline constexpr Duration kPulseEvery = std::chrono::seconds(1);

struct Pulse {
  // Pid of the `--resume` process that holds the stream; 0: the warden's parent does.
  int32_t bearer = 0;
  uint32_t grace_looks = 0;  // how many looks longer the driver may be away
};

// Agent. Never waits; a pulse that finds no room is not needed.
void SendPulse(int fd, const Pulse& pulse);

// Warden. The newest pulse in the pipe, which does not block; `ended`: the agent has closed its
// end.
struct PulseReading {
  std::optional<Pulse> newest;
  bool ended = false;
};
PulseReading OnHeartbeat(int fd);

// When the warden ends the agent: after so many looks in a row without a pulse while nobody bears
// the stream. Looks are counted, not time: a machine that was suspended has missed none. While the
// bearer lives, the driver decides: the agent may be held by a debugger, and the driver by Ctrl-Z.
// Pure.
class PulseWatch {
 public:
  static constexpr uint32_t kMostMissed = 5;

  void Heard(const Pulse& pulse);
  // No pulse came since the last look. True: the agent is to be ended.
  bool Missed(bool bearer_alive);

 private:
  uint32_t missed_ = 0, grace_looks_ = 0;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_PULSE_H_
