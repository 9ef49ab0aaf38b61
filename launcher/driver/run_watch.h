// RunWatch: detects that hvdrun itself did not run for a while: it was stopped (SIGSTOP), or its
// machine was suspended. Pure; one thread.
#ifndef HVD_LAUNCHER_DRIVER_RUN_WATCH_H_
#define HVD_LAUNCHER_DRIVER_RUN_WATCH_H_

#include <optional>

#include "runtime/base/clock.h"

namespace hvd {

class RunWatch {
 public:
  // Maximum interval between calls of Look.
  static constexpr Duration kEvery = std::chrono::seconds(1);
  // Tolerance for a busy machine.
  static constexpr Duration kLate = std::chrono::seconds(2);

  // How long hvdrun did not run since the last call; zero if the delay is within the tolerance.
  Duration Look(TimePoint now) {
    const Duration since = last_ ? now - *last_ : Duration{};
    last_ = now;
    return since > kEvery + kLate ? since - kEvery : Duration{};
  }

 private:
  std::optional<TimePoint> last_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_RUN_WATCH_H_
