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

int MillisecondsUntil(TimePoint then, TimePoint now, int most) {
  if (then <= now) return 0;
  if (then - now >= std::chrono::milliseconds(most)) return most;
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(then - now).count());
}

TimePoint SteadyClock::Now() const { return SteadyNow(); }

}  // namespace hvd
