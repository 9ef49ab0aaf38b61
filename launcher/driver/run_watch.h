// RunWatch: notices that hvdrun itself was not run for a while: it was stopped (SIGSTOP), or its
// machine was suspended. Pure; one thread.
#ifndef HVD_LAUNCHER_DRIVER_RUN_WATCH_H_
#define HVD_LAUNCHER_DRIVER_RUN_WATCH_H_

#include <optional>

#include "runtime/base/clock.h"

namespace hvd {

class RunWatch {
 public:
  // Look is to be called so often at least.
  static constexpr Duration kEvery = std::chrono::seconds(1);
  // A busy machine may be late by so much.
  static constexpr Duration kLate = std::chrono::seconds(2);

  // How long nothing was run since the last call; zero where that is no longer than it may be.
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
