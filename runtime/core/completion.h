// Completion: completes an operation of this rank: releases its memory, queues its name to be freed
// by a later call, applies a change of process sets and wakes threads that sleep for it. Also holds
// whether the engine is closed: a failure is attributed to other ranks only while it is open.
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

  // Not ok: the engine is closed, for this reason.
  const Status& closed() const { return closed_; }
  // `reason` is not ok; the first one wins. Operations that fail from now on fail because this rank
  // closed, or for a reason the peers already know.
  void Close(const Status& reason) {
    if (closed_.ok()) closed_ = reason;
  }

  // Completes the operation, which is not in the outbox, with this status. `peers_may_work`: see
  // Executor::Finish. The removal of a process set fails all operations pending on that set.
  void Complete(Operation* op, Status status, bool peers_may_work);

  // Between these two calls, Complete wakes the sleeping threads of this rank.
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
