// Clock: the only source of "now". Decisions take a TimePoint as an argument; only shells own a
// Clock.
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

// A clock that moves only when told to. Not thread-safe.
class ManualClock final : public Clock {
 public:
  TimePoint Now() const override { return now_; }
  void Advance(Duration d) { now_ += d; }

 private:
  TimePoint now_{};
};

// The steady clock without an object, for hot paths that cannot carry one.
TimePoint SteadyNow();

// Rounded up, for poll and epoll: 0 when `then` is past, `most` when it is later than that.
int MillisecondsUntil(TimePoint then, TimePoint now, int most);

// Seconds since 1970, for people to read; never for decisions.
int64_t WallSeconds();
// Nanoseconds since 1970, to compare the clocks of two hosts.
int64_t WallNanoseconds();

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_CLOCK_H_
