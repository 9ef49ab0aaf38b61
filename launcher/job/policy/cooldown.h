// For how long a place that failed is not used. Pure.
#ifndef HVD_LAUNCHER_JOB_POLICY_COOLDOWN_H_
#define HVD_LAUNCHER_JOB_POLICY_COOLDOWN_H_

#include <cstdint>

#include "runtime/base/clock.h"

namespace hvd {

// The least and the most time; 0 < lo <= hi.
struct CooldownRange {
  Duration lo{}, hi{};

  bool operator==(const CooldownRange&) const = default;
};

// The time after failure number `failures` (from 1) of a place: lo * 2^failures and a random part
// of lo, kept within the range. `jitter` is 0 to 1.
Duration CooldownAfter(const CooldownRange& range, uint32_t failures, double jitter);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_POLICY_COOLDOWN_H_
