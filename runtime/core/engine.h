// Engine: submit -> negotiate -> execute -> complete, on one rank, for every process set.
//
// A rank announces a submitted tensor to its peers by name. Every rank receives every announcement,
// so a rank knows that the tensor is ready as soon as it has received the last one. Ranks may
// submit in any order. There is no cycle and no coordinator; THREADS.md lists the threads. A "peer"
// is an index in Peers, i.e. a rank of this host; the backend negotiates with the other hosts.
//
// This class owns the lock and implements the application's calls and waits. Admission accepts
// requests, ProgressEngine completes them.
//
// All public members are thread-safe; concurrent calls are serialised. Submit, Poll and TryProgress
// never block: one thread can drive many engines.
//
// Submission is asynchronous, even if the work completes immediately: an operation is *done* when
// its result is available. A later call of the application *retires* it: then its name is free and
// Poll returns true. So callers see the same behaviour no matter which rank came last and what the
// runtime thread did meanwhile.
#ifndef HVD_RUNTIME_CORE_ENGINE_H_
#define HVD_RUNTIME_CORE_ENGINE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/backends/backend.h"
#include "runtime/backends/peers.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/core/admission.h"
#include "runtime/core/executor.h"
#include "runtime/core/express.h"
#include "runtime/core/host_attendance.h"
#include "runtime/core/progress_engine.h"
#include "runtime/core/request/request.h"
#include "runtime/core/state/engine_state.h"
#include "runtime/core/state/operation.h"
#include "runtime/core/trace_log.h"
#include "runtime/core/wait_notes.h"
#include "runtime/core/wait_policy.h"
#include "runtime/device/shared_heap.h"
#include "runtime/segment/tuned_settings.h"

namespace hvd {

struct EngineOptions {
  WaitPolicy wait;
  // Overrides `wait` in a job that is tuned; null in others. Outlives the engine.
  const TunedSettings* tuned = nullptr;
  Duration stall_warning = std::chrono::seconds(60);  // 0: never
  Duration stall_shutdown{0};                         // 0: never
  // How long Close() continues operations that peers already work on.
  Duration last_work = std::chrono::milliseconds(200);
  // Allreduce averages divide by the number of ranks that have not joined, not by the size of the
  // set.
  bool average_of_active = false;
  uint32_t handles_given = 0;    // by the engines before this one, see Engine::handles_given
  const Clock* clock = nullptr;  // null: the steady clock
  Recorder recorder = {};        // of operation events; off by default
  // Reports to the launcher that this rank ends the world, and why, before any other rank learns of
  // it. May be empty; called with the engine's lock held.
  ProgressEngine::ReportEnding report_ending = {};
  // Where waits are recorded for the agent; may be null. Outlives the engine.
  StallBoard* stall_board = nullptr;
  // For tensors in device memory; null: they are refused. Outlives the engine.
  Backend* devices = nullptr;
};

// An operation that has ended and has a callback.
struct EndedOperation {
  DoneCallback callback;
  Status status;
  OperationResult result;
};

class Engine {
 public:
  using Handle = Operation::Handle;

  // `world` is set 0 as this rank sees it. Peers, backend and heap (for outputs that the backend
  // allocates) must outlive the engine.
  Engine(Peers& peers, Backend& backend, SharedHeap& heap, Group world, EngineOptions options);
  ~Engine();
  Engine(const Engine&) = delete;

  // Record a training step or a commit.
  void NoteStep();
  void NoteCommit();
  // Records traffic to the leader of another host.
  void NoteLink(uint32_t rank, uint64_t bytes, uint32_t busy_us);

  // Announces a request. Its memory must stay valid until the handle is done.
  Result<Handle> Submit(const RequestSpec& spec);
  // The handle's result holds the id of the new set. `ranks` in any order, without duplicates.
  Result<Handle> SubmitAddProcessSet(std::span<const uint32_t> ranks);
  Result<Handle> SubmitRemoveProcessSet(int32_t id);

  // Makes progress and returns whether the operation was already retired when the call came; never
  // true at the first call after Submit. True: Wait returns at once. kInvalidArgument for an
  // unknown handle.
  Result<bool> Poll(Handle handle);

  // kInProgress after `timeout` (negative: no limit); any other result releases the handle. Outputs
  // that the runtime allocated are freed if `result` is null.
  Status Wait(Handle handle, Duration timeout, OperationResult* result = nullptr);

  // EngineOptions::handles_given of the next engine of this process, so that no handle is reused.
  uint32_t handles_given();

  // Submit and Wait in one call. *handle is 0 unless the wait timed out; `handle` may be null if
  // there is no limit.
  Status Run(const RequestSpec& spec, Duration timeout = Duration(-1), Handle* handle = nullptr);

  // From here on the result goes to the callback: PopEnded returns the operation, Wait does not.
  // False for an unknown handle.
  bool SetCallback(Handle handle, DoneCallback callback);
  // Waits, making progress, until an operation with a callback has ended; its name is free.
  // nullopt: none in flight. For one thread only.
  std::optional<EndedOperation> PopEnded();

  // For the runtime thread, so that peers are not delayed while the application computes: receives
  // announcements of peers, sends those that had no room, and hands operations to devices. Once the
  // application has made no call for a while it also advances started operations, so that results
  // arrive even if no thread waits. True if something is still unsent or on its way to a device.
  // Does nothing while another thread is at work.
  bool TryProgress();

  // Fails the operations in flight and all later submissions with this reason.
  void Close(std::string reason);

  // The ids, ascending; the world ranks of a set, ascending, or nullopt for an unknown set.
  std::vector<int32_t> ProcessSetIds();
  std::optional<std::vector<uint32_t>> ProcessSetRanks(int32_t id);
  // Size of a set (-1: unknown set); this rank's index in it (-1: unknown set or not a member).
  int32_t ProcessSetSize(int32_t id);
  int32_t ProcessSetRank(int32_t id);

 private:
  Result<Operation*> SubmitLocked(const RequestSpec& spec, uint64_t call, bool caller_waits)
      HVD_REQUIRES(mutex_);

  // engine_wait.cc. The waiting functions release the mutex while they wait and hold it again when
  // they return. `looked`: the thread has already spun and yielded as often as the policy says.
  Status WaitLocked(Handle handle, Duration timeout, OperationResult* result, uint64_t call,
                    bool looked = false) HVD_REQUIRES(mutex_);
  Result<Operation*> WaitDone(Handle handle, Duration timeout, bool looked) HVD_REQUIRES(mutex_);
  TraceLog::Wait NoteWait(Handle handle) HVD_REQUIRES(mutex_);
  void CountIfLast(const Operation& op) HVD_REQUIRES(mutex_);
  WaitPolicy Policy() const;
  bool SpinFor(Operation* op) HVD_REQUIRES(mutex_);
  void Idle(Operation* op, TimePoint deadline, uint32_t yields) HVD_REQUIRES(mutex_);
  bool Check(Operation* op) HVD_REQUIRES(mutex_);
  bool WaitForHosts(Operation* op, TimePoint deadline) HVD_REQUIRES(mutex_);
  bool IsOver(const Operation& op) const HVD_REQUIRES(mutex_);
  // No thread waits, and the application has made no call for a while.
  bool IsLeftAlone() HVD_REQUIRES(mutex_);
  void NoteStall(Operation* op, TimePoint now) HVD_REQUIRES(mutex_);

  Peers& peers_;
  const EngineOptions options_;
  const Clock& clock_;

  Mutex mutex_;
  EngineState state_ HVD_GUARDED_BY(mutex_);
  TraceLog trace_ HVD_GUARDED_BY(mutex_);
  Executor executor_ HVD_GUARDED_BY(mutex_);
  Admission admission_ HVD_GUARDED_BY(mutex_);
  ProgressEngine progress_ HVD_GUARDED_BY(mutex_);
  Express express_ HVD_GUARDED_BY(mutex_);
  uint32_t waiting_ HVD_GUARDED_BY(mutex_) = 0;  // threads inside WaitLocked
  HostAttendance hosts_ HVD_GUARDED_BY(mutex_);
  WaitNotes waits_ HVD_GUARDED_BY(mutex_);
  uint64_t calls_ HVD_GUARDED_BY(mutex_) = 0;  // by the application so far: Submit, Run, Poll, Wait
  uint64_t calls_seen_ HVD_GUARDED_BY(mutex_) = 0;  // calls_ as the runtime thread last saw it
  TimePoint seen_at_ HVD_GUARDED_BY(mutex_){};      // when it first saw that value
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_ENGINE_H_
