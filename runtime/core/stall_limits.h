// StallLimits: when a wait for other ranks causes a warning, and when it ends the world. Pure.
#ifndef HVD_RUNTIME_CORE_STALL_LIMITS_H_
#define HVD_RUNTIME_CORE_STALL_LIMITS_H_

#include "runtime/base/clock.h"
#include "runtime/core/state/operation.h"

namespace hvd {

enum class Stall { kNone, kWarn, kShutdown };

struct StallLimits {
  Duration warning{0};   // between two warnings about one operation; 0: no warnings
  Duration shutdown{0};  // limit of the whole wait; 0: none

  // Call before each sleep for the operation; `waiting_since` is set from the second one on. Stores
  // in the operation when the wait began and when it was last warned about.
  Stall Check(Operation* op, TimePoint now) const {
    if (op->waiting_since == TimePoint{}) op->waiting_since = op->warned_at = now;
    const bool too_long = shutdown.count() > 0 && now - op->waiting_since >= shutdown;
    const bool warn = warning.count() > 0 && now - op->warned_at >= warning;
    if (too_long || warn) op->warned_at = now;
    if (too_long) return Stall::kShutdown;
    return warn ? Stall::kWarn : Stall::kNone;
  }
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_STALL_LIMITS_H_
