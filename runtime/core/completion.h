// Completion: the end of an operation of this rank: its memory is given back, its name is freed by
// a later call, the process set that it was for changes, and threads that sleep for it wake. Also
// whether the engine serves at all, because a failure counts as that of others only while it does.
//
// Nothing here blocks or reads a clock. One thread at a time (the engine's lock).
#ifndef HVD_RUNTIME_CORE_COMPLETION_H_
#define HVD_RUNTIME_CORE_COMPLETION_H_

#include <cstdint>

#include "runtime/backends/peers.h"
#include "runtime/base/status.h"
#include "runtime/core/executor.h"
#include "runtime/core/outbox.h"
#include "runtime/core/state/engine_state.h"
#include "runtime/core/trace_log.h"

namespace hvd {

class Completion {
 public:
  // All outlive this object.
  Completion(Peers& peers, EngineState& state, Executor& executor, Outbox& outbox, TraceLog& trace)
      : peers_(peers), state_(state), executor_(executor), outbox_(outbox), trace_(trace) {}

  // Not ok: the engine serves no more, for this reason.
  const Status& closed() const { return closed_; }
  // `reason` is not ok; the first one stays. What completes from now on fails at this rank's own
  // wish, or of what the peers were told already.
  void Close(const Status& reason) {
    if (closed_.ok()) closed_ = reason;
  }

  // The operation is over with this status; it is not in the outbox. `peers_may_work`: see
  // Executor::Finish. The removal of a process set completes all operations that wait for that set.
  void Complete(Operation* op, Status status, bool peers_may_work);

  // Between the two, Complete wakes the threads of this rank that sleep.
  void BeginSleep() { ++sleepers_; }
  void EndSleep() { --sleepers_; }

 private:
  void ChangeSets(Operation* op, const Detail& detail, bool agreed);
  void FailPendingOn(const ProcessSet* set);

  Peers& peers_;
  EngineState& state_;
  Executor& executor_;
  Outbox& outbox_;
  TraceLog& trace_;
  uint32_t sleepers_ = 0;  // threads
  Status closed_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_COMPLETION_H_
