// TickClock: converts ticks of the recorder to nanoseconds of the host's steady clock. Derives the
// rate of the counter from pairs of readings. Pure: the readings are passed in.
#ifndef HVD_RUNTIME_TRACE_TICK_CLOCK_H_
#define HVD_RUNTIME_TRACE_TICK_CLOCK_H_

#include <cstdint>
#include <optional>
#include <span>

#include "runtime/trace/ring.h"

namespace hvd {

// Both clocks at one moment.
struct TickReading {
  uint64_t ticks = 0;
  int64_t steady_ns = 0;
};

// Now, of the processor's counter.
TickReading ReadTickPair();

class TickClock {
 public:
  // Later readings improve the rate. Ignores one before the first.
  void Add(const TickReading& reading);
  // Nothing before there are two readings at least a millisecond apart.
  std::optional<int64_t> ToSteadyNs(uint64_t ticks) const;
  // The duration of this number of ticks; 0 before there are two readings.
  int64_t DurationNs(TraceClock clock, uint64_t ticks) const;

 private:
  std::optional<TickReading> first_, last_;
};

// The stamps of `records`, which are from a ring with this clock, become nanoseconds of the host's
// steady clock; 0 where `ticks` cannot tell yet. Records of names have no stamp.
void StampInSteadyNs(std::span<TraceRecord> records, TraceClock clock, const TickClock& ticks);

}  // namespace hvd

#endif  // HVD_RUNTIME_TRACE_TICK_CLOCK_H_
