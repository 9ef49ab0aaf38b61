// How long tests wait on the wall clock before they fail: what a quiet machine needs, times
// HVD_TEST_SLOWNESS, which scripts/test.sh measures by test/slowness.py.
#ifndef HVD_TEST_SUPPORT_DEADLINE_H_
#define HVD_TEST_SUPPORT_DEADLINE_H_

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "runtime/base/clock.h"

namespace hvd {

inline double TestSlowness() {
  const char* measured = std::getenv("HVD_TEST_SLOWNESS");
  return measured == nullptr ? 1.0 : std::max(1.0, std::strtod(measured, nullptr));
}

// A limit of a quiet machine on this one.
inline Duration Scaled(Duration limit) {
  return std::chrono::duration_cast<Duration>(limit * TestSlowness());
}

// For whatever has to happen at all: far more than a busy machine needs.
inline const Duration kDeadline = Scaled(std::chrono::seconds(60));
inline TimePoint Soon() { return SteadyNow() + kDeadline; }

}  // namespace hvd

#endif  // HVD_TEST_SUPPORT_DEADLINE_H_
