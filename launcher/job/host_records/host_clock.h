// When something happened on another host, by our own steady clock. Steady clocks count from the
// boot of their host (or from anything, in a time namespace), so timestamps of different hosts
// cannot be compared directly. We ask the host for its time; the answer was given at some moment
// during the round trip, so the error is at most half the round trip. Two answers give the rate of
// its clock relative to ours. Pure.
#ifndef HVD_LAUNCHER_JOB_HOST_RECORDS_HOST_CLOCK_H_
#define HVD_LAUNCHER_JOB_HOST_RECORDS_HOST_CLOCK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"

namespace hvd {

// One question and its answer.
struct ClockReading {
  TimePoint asked{}, answered{};  // by our clock
  int64_t host_ns = 0;            // what the host's clock showed in between
};

class HostClock {
 public:
  // A host that has not been asked yet.
  HostClock() = default;
  // A host whose clock is ours.
  static HostClock Ours();

  // A reading that contradicts the former ones (the host was suspended, or we were) replaces them.
  void Add(const ClockReading& reading);

  // By our clock; the true time is at most `uncertainty` earlier or later.
  struct Moment {
    TimePoint at{};
    Duration uncertainty{};
  };
  // The time of a timestamp of the host's clock, from the reading with the least uncertainty about
  // it. Nothing before the first reading.
  std::optional<Moment> Convert(int64_t stamp_ns) const;

 private:
  Moment ConvertBy(const ClockReading& reading, int64_t stamp_ns) const;
  void MeasureRate();

  bool ours_ = false;
  double rate_ = 0;                     // nanoseconds that it gains in one of ours
  std::vector<ClockReading> readings_;  // the oldest first
};

// When to ask which host: several times in a row once it is connected, then every few seconds,
// never two questions at a time. A question that took long (the connection was lost and
// re-established) gives a reading with a large uncertainty, which does no harm.
class ClockSchedule {
 public:
  explicit ClockSchedule(size_t hosts) : hosts_(hosts) {}

  void AddHost() { hosts_.emplace_back(); }
  // Its agent is connected and may be asked from now on.
  void Begin(uint32_t host) { hosts_[host].there = true; }
  // The question that is due for this host, if there is one; it counts as asked.
  std::optional<AskTime> Next(uint32_t host, TimePoint now);
  // Nothing when the answer matches no outstanding question.
  std::optional<ClockReading> HandleReply(uint32_t host, const TimeReply& reply, TimePoint now);

 private:
  struct Host {
    bool there = false;
    uint32_t asked = 0, answered = 0;  // numbers of questions
    TimePoint asked_at{};
  };
  std::vector<Host> hosts_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_HOST_RECORDS_HOST_CLOCK_H_
