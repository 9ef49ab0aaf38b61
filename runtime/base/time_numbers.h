// Times as integers, for messages and shared memory.
#ifndef HVD_RUNTIME_BASE_TIME_NUMBERS_H_
#define HVD_RUNTIME_BASE_TIME_NUMBERS_H_

#include <chrono>
#include <cstdint>

#include "runtime/base/clock.h"

namespace hvd {

// Nanoseconds of the host's steady clock.
inline int64_t NanosecondsOf(TimePoint moment) { return moment.time_since_epoch().count(); }

// Rounded towards zero.
inline int64_t MillisecondsOf(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_TIME_NUMBERS_H_
