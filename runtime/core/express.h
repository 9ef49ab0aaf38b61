// Express: the short way of a repeated small operation that one call submits and waits for. It
// announces the request by the same record as Outbox and reads those of the peers where they lie,
// but makes no Operation and enters nothing into the rounds. README.md says why each rank may take
// this way or the common one in each round, by itself.
//
// One thread at a time (the engine's lock). A thread that has begun a round is alone inside the
// engine; one that comes in while it has given its core away settles the round first.
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
  // it has to go the common way, and nothing has happened. No other thread waits in the engine.
  bool Begin(const RequestSpec& spec, uint64_t call);

  // Waits for the round that the calling thread has begun, and lets go of the mutex while it gives
  // its core away. 0: the round is over, the output complete. Otherwise the operation that it has
  // become, because it takes long, or a peer or another thread of this rank does something else.
  // *looked: because it takes long.
  Operation::Handle Wait(Mutex& mutex, WaitPolicy policy, bool* looked) HVD_REQUIRES(mutex);

  // A round has begun and is neither over nor settled.
  bool open() const { return name_ != nullptr; }
  // The round goes on the common way, as if it had begun there: announced, and nothing received.
  void Settle() {
    if (open()) [[unlikely]]
      BecomeOperation();
  }

 private:
  enum class Sight : uint8_t {
    kWaits,  // for an announcement
    kDone,   // the round is over
    kOther,  // a peer has announced something else first, or the world broke
  };

  bool IsQuiet() const;
  bool CanTake(TensorName* name, const RequestSpec& spec) const;
  bool Announce(const TensorName& name, const RequestSpec& spec);
  bool LookFor(uint32_t spins);
  Sight Look();
  bool Combine();
  void BecomeOperation();

  Peers& peers_;
  Backend& backend_;
  EngineState& state_;
  Executor& executor_;
  Admission& admission_;
  ProgressEngine& progress_;
  TraceLog& trace_;
  TensorName* name_ = nullptr;  // of the round that is open
  const RequestSpec* spec_ = nullptr;
  uint64_t call_ = 0;
  uint32_t seen_ = 0;  // members whose announcement lies ready, the first ones of the group
  Operation::Handle* settled_ = nullptr;  // of the thread that waits: what the round has become
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_EXPRESS_H_
