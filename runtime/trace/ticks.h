// Ticks: the clock of the recorder. The processor's counter (half the cost of the steady clock) if
// it is the kernel's clock source; otherwise the steady clock in nanoseconds.
#ifndef HVD_RUNTIME_TRACE_TICKS_H_
#define HVD_RUNTIME_TRACE_TICKS_H_

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "runtime/trace/ring.h"

namespace hvd {

// Nanoseconds of the steady clock, the same origin for all processes of a host.
int64_t SteadyNanoseconds();

// The best clock of this machine. Reads a file of the kernel on the first call; thread-safe.
TraceClock BestTraceClock();

inline uint64_t ReadTicks([[maybe_unused]] TraceClock clock) {
#if defined(__x86_64__)
  if (clock == TraceClock::kTsc) return __rdtsc();
#endif
  return static_cast<uint64_t>(SteadyNanoseconds());
}

}  // namespace hvd

#endif  // HVD_RUNTIME_TRACE_TICKS_H_
