// Clock: the only source of "now". Decision code gets a TimePoint as an argument; only its callers
// own a Clock.
#ifndef HVD_RUNTIME_BASE_CLOCK_H_
#define HVD_RUNTIME_BASE_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace hvd {

using Duration = std::chrono::nanoseconds;
// Nanoseconds since an arbitrary origin; monotonic; the same origin for all processes of one host.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;
};

// The machine's monotonic clock. Thread-safe.
class SteadyClock final : public Clock {
 public:
  TimePoint Now() const override;
};

// A clock that only Advance moves. Not thread-safe.
class ManualClock final : public Clock {
 public:
  TimePoint Now() const override { return now_; }
  void Advance(Duration d) { now_ += d; }

 private:
  TimePoint now_{};
};

// The steady clock without an object, for hot paths that cannot carry one.
TimePoint SteadyNow();

// Timeout for poll and epoll, rounded up: 0 if `then` is past, at most `most`.
int MillisecondsUntil(TimePoint then, TimePoint now, int most);

// Seconds since 1970, for display only, never for decisions.
int64_t WallSeconds();
// Nanoseconds since 1970, to compare the clocks of two hosts.
int64_t WallNanoseconds();

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_CLOCK_H_
