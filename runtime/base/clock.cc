#include "runtime/base/clock.h"

namespace hvd {

TimePoint SteadyNow() { return std::chrono::steady_clock::now(); }

int64_t WallSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int64_t WallNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

TimePoint SteadyClock::Now() const { return SteadyNow(); }

}  // namespace hvd
