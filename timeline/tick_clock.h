// TickClock: ticks of the recorder as nanoseconds of the host's steady clock. Learns the rate of
// the counter from pairs of readings. Pure: the readings are passed in.
#ifndef HVD_TIMELINE_TICK_CLOCK_H_
#define HVD_TIMELINE_TICK_CLOCK_H_

#include <cstdint>
#include <optional>

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
  // Later readings make the rate more exact. One before the first is ignored.
  void Add(const TickReading& reading);
  // Nothing before there are two readings at least a millisecond apart.
  std::optional<int64_t> ToSteadyNs(uint64_t ticks) const;

 private:
  std::optional<TickReading> first_, last_;
};

}  // namespace hvd

#endif  // HVD_TIMELINE_TICK_CLOCK_H_
