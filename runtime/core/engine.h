// Engine: submit -> negotiate -> execute -> complete, on one rank, for every process set.
//
// A rank announces a submitted tensor to its peers by name. Every rank receives every announcement,
// so the rank that receives the last one knows at once that the tensor is ready. Ranks may submit
// in any order. There is no cycle and no coordinator; THREADS.md lists the threads. A "peer" is a
// number in Peers, that is, a rank of this host; the backend agrees with the other hosts.
//
// This class has the lock, the calls of the application and their waits. Admission accepts
// requests, ProgressEngine completes them.
//
// All public members are thread-safe: calls of several threads are taken one after the other.
// Submit, Poll and TryProgress never block: one thread can drive many engines.
//
// Submission is asynchronous, also where the work is done at once: an operation is *done* when its
// result is there. A later call of the application *retires* it: then its name is free and Poll
// returns true. So a caller sees the same, no matter which rank came last and what the runtime
// thread did meanwhile.
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
  // What counts more than `wait` in a job that is tuned; null in others. Outlives the engine.
  const TunedSettings* tuned = nullptr;
  Duration stall_warning = std::chrono::seconds(60);  // 0: never
  Duration stall_shutdown{0};                         // 0: never
  // How long a rank that closes goes on with operations that its peers already work on.
  Duration last_work = std::chrono::milliseconds(200);
  // An allreduce divides its average by the ranks that have not joined, not by the size of the set.
  bool average_of_active = false;
  uint32_t handles_given = 0;    // by the engines before this one, see Engine::handles_given
  const Clock* clock = nullptr;  // null: the machine's
  Recorder recorder = {};        // of what happens to operations; by default of nothing
  // Reports to the launcher that this rank ends the world, and why, before any other rank learns of
  // it. May be empty; called with the engine's lock held.
  ProgressEngine::TellEnding tell_ending = {};
  // Where waits are noted for the agent; null: nowhere. Outlives the engine.
  StallBoard* stall_board = nullptr;
  // For tensors in memory of devices; null: they are refused. Outlives the engine.
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

  // `world` is set 0 as this rank sees it. Peers, backend and heap (of the outputs that the backend
  // makes) have to outlive the engine.
  Engine(Peers& peers, Backend& backend, SharedHeap& heap, Group world, EngineOptions options);
  ~Engine();
  Engine(const Engine&) = delete;

  // For the recorder: the program has come to such a point.
  void NoteStep();
  void NoteCommit();
  // Bytes have gone to the leader of another host.
  void NoteLink(uint32_t rank, uint64_t bytes, uint32_t busy_us);

  // Announces a request. Its memory must stay valid until the handle is done.
  Result<Handle> Submit(const RequestSpec& spec);
  // The handle's result has the id of the new set. `ranks` in any order, none twice.
  Result<Handle> SubmitAddProcessSet(std::span<const uint32_t> ranks);
  Result<Handle> SubmitRemoveProcessSet(int32_t id);

  // Makes progress, and returns whether the operation was retired when the call came: never at the
  // first call after Submit. True: Wait returns at once. kInvalidArgument for an unknown handle.
  Result<bool> Poll(Handle handle);

  // kInProgress after `timeout` (negative: never); any other result forgets the handle. Outputs
  // that the runtime made are freed where `result` is null.
  Status Wait(Handle handle, Duration timeout, OperationResult* result = nullptr);

  // For the options of the next engine of this process, whose handles then differ from all of
  // these.
  uint32_t handles_given();

  // Submit and Wait in one go. *handle is 0 unless the wait ran out of its time; `handle` may be
  // null where there is no limit.
  Status Run(const RequestSpec& spec, Duration timeout = Duration(-1), Handle* handle = nullptr);

  // From here on the operation belongs to the callback: TakeEnded returns it, no Wait does. False
  // for an unknown handle.
  bool SetCallback(Handle handle, DoneCallback callback);
  // Waits for the next operation with a callback that ends, and makes progress meanwhile; its name
  // is free. nullopt: there is none in flight. For one thread.
  std::optional<EndedOperation> TakeEnded();

  // Receives announcements of peers and sends those that had no room: for the runtime thread, so
  // that peers are not delayed while the application computes; gives operations to devices. Works
  // at those that have started once the application has made no call for a while, so that a result
  // that nobody waits for comes as well. True if something is still unsent or on its way to a
  // device.
  // Does nothing while another thread is at work.
  bool TryProgress();

  // Fails the operations in flight, and all that are submitted from now on, with this sentence.
  void Close(std::string reason);

  // The ids, ascending; the world ranks of a set, ascending, or nullopt for an unknown set.
  std::vector<int32_t> ProcessSetIds();
  std::optional<std::vector<uint32_t>> ProcessSetRanks(int32_t id);
  // Size of a set and this rank's number in it; -1 for an unknown set and for a non-member.
  int32_t ProcessSetSize(int32_t id);
  int32_t ProcessSetRank(int32_t id);

 private:
  Result<Operation*> SubmitLocked(const RequestSpec& spec, uint64_t call, bool caller_waits)
      HVD_REQUIRES(mutex_);

  // engine_wait.cc. Those that wait let go of the mutex meanwhile, and hold it again when they
  // return.
  // `looked`: the thread has spun and given its core away as often as the policy says.
  Status WaitLocked(Handle handle, Duration timeout, OperationResult* result, uint64_t call,
                    bool looked = false) HVD_REQUIRES(mutex_);
  Result<Operation*> WaitDone(Handle handle, Duration timeout, bool looked) HVD_REQUIRES(mutex_);
  TraceLog::Wait NoteWait(Handle handle) HVD_REQUIRES(mutex_);
  void CountIfLast(const Operation& op) HVD_REQUIRES(mutex_);
  WaitPolicy Policy() const;
  bool SpinFor(Operation* op) HVD_REQUIRES(mutex_);
  void Idle(Operation* op, TimePoint deadline, uint32_t yields) HVD_REQUIRES(mutex_);
  bool Look(Operation* op) HVD_REQUIRES(mutex_);
  bool WaitForHosts(Operation* op, TimePoint deadline) HVD_REQUIRES(mutex_);
  bool IsOver(const Operation& op) const HVD_REQUIRES(mutex_);
  // No thread waits, and the application has not called since a look long ago.
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
  uint64_t calls_ HVD_GUARDED_BY(mutex_) = 0;  // of the application so far: Submit, Run, Poll, Wait
  uint64_t calls_seen_ HVD_GUARDED_BY(mutex_) = 0;  // by the runtime thread
  TimePoint seen_at_ HVD_GUARDED_BY(mutex_){};      // when it has first seen so many
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_ENGINE_H_
