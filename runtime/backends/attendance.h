// Attendance: lets a thread that waits for an operation over several hosts do its work in place of
// other threads.
#ifndef HVD_RUNTIME_BACKENDS_ATTENDANCE_H_
#define HVD_RUNTIME_BACKENDS_ATTENDANCE_H_

#include "runtime/base/clock.h"

namespace hvd {

class Attendance {
 public:
  virtual ~Attendance() = default;

  // For a caller that waits and calls again soon: does what another thread would do, without
  // blocking. One thread at a time.
  virtual void Attend() = 0;
  // The same once, but if nothing has changed since the last Attend, waits for other hosts until
  // the deadline. Without the engine's lock, from any thread. False: such a wait is not possible
  // now. Anything that ends an operation ends the wait, except events on this host.
  virtual bool AttendUntil(TimePoint deadline) = 0;
  // The caller will not call again soon: the other threads continue at once.
  virtual void Rest() = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_ATTENDANCE_H_
