// StallLimits: when a wait for other ranks is worth a warning, and when it ends the world. A pure
// decision.
#ifndef HVD_RUNTIME_CORE_STALL_LIMITS_H_
#define HVD_RUNTIME_CORE_STALL_LIMITS_H_

#include "runtime/base/clock.h"
#include "runtime/core/state/operation.h"

namespace hvd {

enum class Stall { kNone, kWarn, kShutdown };

struct StallLimits {
  Duration warning{0};   // between two warnings about one operation; 0: none
  Duration shutdown{0};  // of the whole wait; 0: none

  // A thread is about to sleep for the operation, and not for the first time if `waiting_since` is
  // set. Notes in the operation when it began to wait and when it was warned about.
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
