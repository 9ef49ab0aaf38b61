// IdleLimit: a deadline that moves with progress. Pure: the time is passed in.
#ifndef HVD_RUNTIME_BASE_IDLE_LIMIT_H_
#define HVD_RUNTIME_BASE_IDLE_LIMIT_H_

#include <cstdint>

#include "runtime/base/clock.h"

namespace hvd {

inline constexpr Duration kNoLimit = Duration::max();

// `now + limit` without overflow; kNoLimit gives TimePoint::max().
constexpr TimePoint After(TimePoint now, Duration limit) {
  return limit >= TimePoint::max() - now ? TimePoint::max() : now + limit;
}

class IdleLimit {
 public:
  // `moved`: progress so far in bytes, rounds or any counter that only grows.
  IdleLimit(Duration limit, uint64_t moved, TimePoint now)
      : limit_(limit), moved_(moved), next_look_(After(now, limit)) {}

  // When to call Over next; TimePoint::max() for kNoLimit.
  TimePoint next_look() const { return next_look_; }

  // True if there was no progress since the last check, `limit` ago. So stalled work times out
  // after `limit` at the earliest and twice that at the latest, and work that makes any progress
  // never does.
  bool Over(uint64_t moved, TimePoint now) {
    if (now < next_look_) return false;
    if (moved == moved_) return true;
    moved_ = moved;
    next_look_ = After(now, limit_);
    return false;
  }

 private:
  Duration limit_;
  uint64_t moved_;
  TimePoint next_look_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_IDLE_LIMIT_H_
