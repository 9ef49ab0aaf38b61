// Express: the fast path of a repeated small operation that one call submits and waits for. It
// announces the request with the same record as Outbox and reads the peers' records in place, but
// creates no Operation and enters nothing into the rounds. AGREEMENT.md says why each rank may
// choose this or the normal path in each round on its own.
//
// One thread at a time (the engine's lock). A thread that has begun a round is alone inside the
// engine; a thread that enters while it is in sched_yield() settles the round first.
#ifndef HVD_RUNTIME_CORE_EXPRESS_H_
#define HVD_RUNTIME_CORE_EXPRESS_H_

#include <cstdint>

#include "runtime/backends/backend.h"
#include "runtime/backends/peers.h"
#include "runtime/base/mutex.h"
#include "runtime/core/admission.h"
#include "runtime/core/executor.h"
#include "runtime/core/progress_engine.h"
#include "runtime/core/request/request.h"
#include "runtime/core/state/engine_state.h"
#include "runtime/core/state/operation.h"
#include "runtime/core/trace_log.h"
#include "runtime/core/wait_policy.h"

namespace hvd {

class Express {
 public:
  // All outlive this object.
  Express(Peers& peers, Backend& backend, EngineState& state, Executor& executor,
          Admission& admission, ProgressEngine& progress, TraceLog& trace)
      : peers_(peers),
        backend_(backend),
        state_(state),
        executor_(executor),
        admission_(admission),
        progress_(progress),
        trace_(trace) {}

  // Announces the request, which outlives the round, as the given call of the application. False:
  // use the normal path; nothing has changed. Requires that no other thread waits in the engine.
  bool Begin(const RequestSpec& spec, uint64_t call);

  // Waits for the round that the calling thread has begun; releases the mutex around sched_yield().
  // 0: the round is over, the output complete. Otherwise the handle of the operation that the round
  // became because it took too long or a peer or another thread of this rank did something else.
  // *looked is set if it took too long.
  Operation::Handle Wait(Mutex& mutex, WaitPolicy policy, bool* looked) HVD_REQUIRES(mutex);

  // A round has begun and is neither complete nor on the normal path.
  bool open() const { return name_ != nullptr; }
  // Moves an open round to the normal path, as if begun there: announced, and nothing received.
  void FallBack() {
    if (open()) [[unlikely]]
      BecomeOperation();
  }

 private:
  enum class Observation : uint8_t {
    kWaits,  // an announcement is missing
    kDone,   // the round is over
    kOther,  // a peer announced something else first, the backend refused, or the world broke
  };

  bool IsQuiet() const;
  bool CanTake(TensorName* name, const RequestSpec& spec) const;
  bool Announce(const TensorName& name, const RequestSpec& spec);
  bool PollRound(uint32_t spins);
  Observation Observe();
  bool Combine();
  void BecomeOperation();

  Peers& peers_;
  Backend& backend_;
  EngineState& state_;
  Executor& executor_;
  Admission& admission_;
  ProgressEngine& progress_;
  TraceLog& trace_;
  TensorName* name_ = nullptr;  // of the open round; null: none
  const RequestSpec* spec_ = nullptr;
  uint64_t call_ = 0;
  uint32_t seen_ = 0;  // leading members of the group whose announcements have arrived
  Operation::Handle* fallback_ = nullptr;  // of the waiting thread: the handle on the normal path
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_EXPRESS_H_
