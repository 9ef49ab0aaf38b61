// ProgressEngine: drives the operations of this rank from submission to completion, whenever a
// thread calls it: announces them, receives the announcements of the peers, starts what is ready,
// advances what has started and fails what cannot complete.
//
// Nothing here blocks or reads a clock. One thread at a time (the engine's lock).
#ifndef HVD_RUNTIME_CORE_PROGRESS_ENGINE_H_
#define HVD_RUNTIME_CORE_PROGRESS_ENGINE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/backends/peers.h"
#include "runtime/base/status.h"
#include "runtime/core/completion.h"
#include "runtime/core/executor.h"
#include "runtime/core/inbox.h"
#include "runtime/core/outbox.h"
#include "runtime/core/state/engine_state.h"
#include "runtime/core/trace_log.h"

namespace hvd {

// Why a rank ends its world.
enum class EndCause { kFailure, kStall };

class ProgressEngine {
 public:
  // Reports the end of the world to the launcher.
  using ReportEnding = std::function<void(EndCause cause, const std::string& reason)>;

  // `report_ending`: see EngineOptions.
  ProgressEngine(Peers& peers, EngineState& state, Executor& executor, TraceLog& trace,
                 ReportEnding report_ending);

  // Not ok: the engine is closed, for this reason. CheckOpen also checks whether the world broke;
  // if so, it completes what the ranks had finished before and fails the rest.
  const Status& closed() const { return completion_.closed(); }
  const Status& CheckOpen() {
    if (closed().ok() && peers_.broken()) FinishBroken();
    return closed();
  }
  // No operation is started and incomplete.
  bool idle() const { return running_.empty(); }
  // For Express, which reads and writes announcements itself.
  Inbox& inbox() { return inbox_; }
  // Something did not fit into the stream to the peers.
  bool has_unsent() const { return !outbox_.empty(); }

  // Announces a prepared and committed operation; from here on it can only complete.
  void Launch(Operation* op, const RequestSpec& spec);

  // Receives and sends what is possible now and starts operations that became ready.
  void Communicate();
  // Advances an operation that has started and is not done, as far as possible now.
  void Advance(Operation* op);
  // The same for all such operations except `except`, which may be null.
  void AdvanceOthers(const Operation* except);
  // The same for those in device memory. True if some are left.
  bool AdvanceDevices();
  void MakeProgress() {
    Communicate();
    AdvanceOthers(nullptr);
  }

  // Fails operations that wait for a rank that has left and whose messages have all been read.
  void FailWhatNeedsLeavers();
  // Ends the world on all ranks for a reason that only this rank knows.
  void EndWorld(EndCause cause, std::string reason);
  // Ends this engine only: everything in flight fails with this reason.
  void Close(std::string reason);

  // Between these two calls, a completing operation wakes the sleeping threads of this rank.
  void BeginSleep() { completion_.BeginSleep(); }
  void EndSleep() { completion_.EndSleep(); }

 private:
  void Receive();
  void ReceiveFrom(uint32_t peer);
  void Announced(TensorName* name, uint32_t member, uint32_t peer);
  void SendUnsent();

  void Start(TensorName* name);
  void NoteJoined(uint32_t peer);
  void CompleteRounds();
  void FinishJoin(Operation* op);
  void AbortJoin();

  void FailHere(Operation* op, const Status& status);
  void FinishBroken();
  void FailAll(const Status& status);
  bool NeedsDeparted(uint32_t peer, const Operation& op) const;
  void FailUnsatisfiable(Operation* op);

  Peers& peers_;
  EngineState& state_;
  Executor& executor_;
  TraceLog& trace_;
  const ReportEnding report_ending_;
  const uint32_t self_;   // index in Peers
  const uint32_t count_;  // of ranks on this host
  Inbox inbox_;
  Outbox outbox_;
  std::vector<Operation*> running_;  // started, not complete
  Completion completion_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_PROGRESS_ENGINE_H_
