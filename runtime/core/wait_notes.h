// WaitNotes: records on the rank's StallBoard which threads submit and which have waited long.
// Without a board a no-op. One thread at a time (the engine's lock).
#ifndef HVD_RUNTIME_CORE_WAIT_NOTES_H_
#define HVD_RUNTIME_CORE_WAIT_NOTES_H_

#include <pthread.h>

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/backends/backend.h"
#include "runtime/base/clock.h"
#include "runtime/core/state/engine_state.h"
#include "runtime/core/state/operation.h"
#include "runtime/segment/stall_board.h"

namespace hvd {

class WaitNotes {
 public:
  // `board` may be null; otherwise it outlives this object.
  WaitNotes(StallBoard* board, Duration warning, Duration shutdown);

  bool on() const { return board_ != nullptr; }
  // The calling thread submits an operation.
  void NoteSubmitter() {
    if (board_ != nullptr && ::pthread_self() != submitter_) AddSubmitter();
  }
  // The calling thread has waited for the operation since `op.waiting_since`.
  void NoteWait(const Operation& op, const AwaitedRanks& awaited, EngineState& state,
                TimePoint now);
  // The calling thread has stopped waiting.
  void EndWait() {
    if (noted_) ClearWait();
  }

 private:
  void AddSubmitter();
  void ClearWait();

  StallBoard* const board_;
  ::pthread_t submitter_{};           // the last one
  std::vector<uint32_t> submitters_;  // all of them, by kernel thread id
  bool noted_ = false;                // a wait was recorded at least once
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_WAIT_NOTES_H_
