// HostAttendance: lets a thread of this rank that waits for an operation do the work with other
// hosts meanwhile, see Attendance. One thread at a time (the engine's lock).
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
  // All outlive this object.
  HostAttendance(Backend& backend, ProgressEngine& progress, EngineState& state)
      : backend_(backend), progress_(progress), state_(state) {}

  // True if other hosts take part and the operation is so small that waking another thread would
  // take longer than its work, or is the only one pending here. Operations in device memory, and
  // large ones while others are pending, are left to the backend's threads: these negotiate the
  // next one while they work on the current one.
  bool IsFor(const Operation& op) const;

  // Called repeatedly while a thread waits for this operation, which may not have started. True
  // when it is done.
  bool Attend(Operation* op);
  // Non-null if nothing else is pending here, so that the thread may wait for other hosts only.
  Attendance* AlonePending(const Operation& op);
  // True if a thread that sleeps until the other ranks of this host have submitted this operation
  // is expected back soon with work to do. If they take longer, the other threads continue anyway.
  bool StaysFor(const Operation& op) const;
  // Notes that a thread has waited on `attendance`.
  void HasAttended(Attendance* attendance) { attended_ = attendance; }
  // The thread will not call again soon: the other threads take over at once.
  void Rest();

 private:
  bool NothingElsePends() const;

  Backend& backend_;
  ProgressEngine& progress_;
  EngineState& state_;
  Attendance* attended_ = nullptr;  // used since the last Rest
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_HOST_ATTENDANCE_H_
