// Attendance: the work that a thread which waits for an operation over several hosts can do for it
// meanwhile, in place of other threads.
#ifndef HVD_RUNTIME_BACKENDS_ATTENDANCE_H_
#define HVD_RUNTIME_BACKENDS_ATTENDANCE_H_

#include "runtime/base/clock.h"

namespace hvd {

class Attendance {
 public:
  virtual ~Attendance() = default;

  // The caller waits and comes back soon: does now what another thread would do, as far as that
  // waits for nothing. One thread at a time.
  virtual void Attend() = 0;
  // The same once, but waits for other hosts, up to the deadline, where nothing has changed since
  // Attend was called last. Without the engine's lock, from any thread. False: nobody can wait that
  // way now. Whatever ends an operation ends the wait, other than news of this host.
  virtual bool AttendUntil(TimePoint deadline) = 0;
  // The caller does not come back soon: the other threads go on at once.
  virtual void Rest() = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_ATTENDANCE_H_
