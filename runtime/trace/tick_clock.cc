#include "runtime/trace/tick_clock.h"

#include <cmath>

#include "runtime/trace/ticks.h"

namespace hvd {

// The counter is read before and after the clock, and again if the thread was interrupted in
// between.
TickReading ReadTickPair() {
  TickReading best;
  uint64_t shortest = UINT64_MAX;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const uint64_t before = ReadTicks(TraceClock::kTsc);
    const int64_t steady_ns = SteadyNanoseconds();
    const uint64_t took = ReadTicks(TraceClock::kTsc) - before;
    if (took >= shortest) continue;
    shortest = took;
    best = {before + took / 2, steady_ns};
  }
  return best;
}

void TickClock::Add(const TickReading& reading) {
  constexpr int64_t kApart = 1'000'000;
  if (!first_) {
    first_ = reading;
  } else if (reading.steady_ns - first_->steady_ns >= kApart && reading.ticks > first_->ticks) {
    last_ = reading;
  }
}

std::optional<int64_t> TickClock::ToSteadyNs(uint64_t ticks) const {
  if (!last_) return std::nullopt;
  const double ns_a_tick = static_cast<double>(last_->steady_ns - first_->steady_ns) /
                           static_cast<double>(last_->ticks - first_->ticks);
  // From the nearest reading, so that a double represents the distance exactly.
  const double since = static_cast<double>(static_cast<int64_t>(ticks - last_->ticks));
  const double ns = since * ns_a_tick;
  constexpr double kMost = 4e18;  // of damaged records
  if (std::abs(ns) > kMost) return last_->steady_ns;
  return last_->steady_ns + std::llround(ns);
}

int64_t TickClock::DurationNs(TraceClock clock, uint64_t ticks) const {
  if (clock != TraceClock::kTsc) return static_cast<int64_t>(ticks);
  if (!last_) return 0;
  return *ToSteadyNs(last_->ticks + ticks) - last_->steady_ns;
}

void StampInSteadyNs(std::span<TraceRecord> records, TraceClock clock, const TickClock& ticks) {
  if (clock != TraceClock::kTsc) return;
  for (TraceRecord& record : records) {
    if (record.kind == TraceKind::kName) continue;
    record.stamp = static_cast<uint64_t>(ticks.ToSteadyNs(record.stamp).value_or(0));
  }
}

}  // namespace hvd
