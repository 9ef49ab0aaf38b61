#include "launcher/agent/pulse.h"

#include <unistd.h>

#include <cerrno>

namespace hvd {

void SendPulse(int fd, const Pulse& pulse) {
  [[maybe_unused]] ssize_t written = ::write(fd, &pulse, sizeof pulse);
}

PulseReading OnHeartbeat(int fd) {
  PulseReading heard;
  Pulse pulse;
  while (true) {
    ssize_t got = ::read(fd, &pulse, sizeof pulse);  // whole pulses: they are shorter than PIPE_BUF
    if (got == sizeof pulse) {
      heard.newest = pulse;
    } else if (got >= 0 || errno != EINTR) {
      heard.ended = got == 0;
      return heard;
    }
  }
}

void PulseWatch::Heard(const Pulse& pulse) {
  missed_ = 0;
  grace_looks_ = pulse.grace_looks;
}

bool PulseWatch::Missed(bool bearer_alive) {
  if (bearer_alive) {
    missed_ = 0;
    return false;
  }
  return ++missed_ >= kMostMissed && missed_ - kMostMissed >= grace_looks_;
}

}  // namespace hvd
