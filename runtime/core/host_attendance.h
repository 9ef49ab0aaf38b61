// HostAttendance: a thread of this rank that waits for an operation works with other hosts
// meanwhile, see Attendance. One thread at a time (the engine's lock).
#ifndef HVD_RUNTIME_CORE_HOST_ATTENDANCE_H_
#define HVD_RUNTIME_CORE_HOST_ATTENDANCE_H_

#include "runtime/backends/attendance.h"
#include "runtime/backends/backend.h"
#include "runtime/core/progress_engine.h"
#include "runtime/core/state/engine_state.h"
#include "runtime/core/state/operation.h"

namespace hvd {

class HostAttendance {
 public:
  // All of them outlive it.
  HostAttendance(Backend& backend, ProgressEngine& progress, EngineState& state)
      : backend_(backend), progress_(progress), state_(state) {}

  // Other hosts take part, and it is so small that waking another thread would take longer than its
  // work, or it is all that is pending here. A large one beside others, and one in memory of a
  // device, is left to the threads that do it: these negotiate the next while they work at one.
  bool IsFor(const Operation& op) const;

  // The thread waits for this operation, which may not have started, and comes back soon. True when
  // it is done.
  bool Attend(Operation* op);
  // Where nothing else is pending here, so that the thread may wait for other hosts alone. Null: it
  // may not.
  Attendance* AlonePending(const Operation& op);
  // The thread is going to sleep until its neighbours have submitted this operation: it will be
  // back soon, and then there is something to do. Where they take longer, the other threads go on
  // all the same.
  bool StaysFor(const Operation& op) const;
  // A thread has waited there.
  void HasAttended(Attendance* attendance) { attended_ = attendance; }
  // The thread does not come back soon.
  void Rest();

 private:
  bool NothingElsePends() const;

  Backend& backend_;
  ProgressEngine& progress_;
  EngineState& state_;
  Attendance* attended_ = nullptr;  // since the last rest
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_HOST_ATTENDANCE_H_
