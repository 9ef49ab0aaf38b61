// Engine: submit -> negotiate -> execute -> complete, on one rank.
//
// A submitted tensor is announced to the peers by name; whoever hears the last announcement knows, without asking anybody,
// that the tensor is ready, because every rank hears every announcement. Ranks may submit in any order. There is no cycle
// and no coordinator; THREADS.md says which thread does what.
//
// All members are thread-safe.
#ifndef HVD_RUNTIME_CORE_ENGINE_H_
#define HVD_RUNTIME_CORE_ENGINE_H_

#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/backends/backend.h"
#include "runtime/backends/peers.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/core/name_table.h"
#include "runtime/core/operation.h"
#include "runtime/core/request.h"
#include "runtime/core/wait_policy.h"

namespace hvd {

struct EngineOptions {
  WaitPolicy wait;
  Duration stall_warning = std::chrono::seconds(60);  // 0: never
};

class Engine {
 public:
  using Handle = Operation::Handle;

  // Peers and backend outlive the engine.
  Engine(Peers& peers, Backend& backend, EngineOptions options);
  ~Engine();
  Engine(const Engine&) = delete;

  // Announces a tensor. Its memory must stay valid until the handle is done.
  Result<Handle> Submit(const RequestSpec& spec);

  // True when Wait would return at once. kInvalidArgument for an unknown handle.
  Result<bool> Poll(Handle handle);

  // kInProgress after `timeout` (negative: never); any other result forgets the handle.
  Status Wait(Handle handle, Duration timeout);

  // Submit and Wait without limit, in one go.
  Status Run(const RequestSpec& spec);

  // Hears what peers announced and sends what had no room: for the runtime thread, so that peers are not held up while
  // the application computes. True if something is still unsent. Does nothing while another thread is at work.
  bool Tend();

  // Fails what is in flight, and everything submitted from now on, with this sentence.
  void Close(std::string reason);

 private:
  // Talking to peers.
  Result<Operation*> SubmitLocked(const RequestSpec& spec, size_t count);
  Status PrepareOp(Operation* op, const RequestSpec& spec, size_t count);
  bool Announce(Operation* op);
  void AnnounceUnsent();
  void Hear();
  bool HearOne(uint32_t peer, std::span<const std::byte> record);
  void KeepPayload(TensorName* name, uint32_t peer);

  // Executing.
  bool Ready(const TensorName& name) const;
  void Start(TensorName* name);
  Status Agree(TensorName* name);
  void Advance(Operation* op);
  void AdvanceOthers(const Operation* except);
  void Complete(Operation* op, Status status, bool peers_may_work);
  void FailAll(const Status& status);
  void FailWhatNeedsLeavers();
  bool WaitsInVainFor(uint32_t peer, const Operation& op) const;

  // Waiting. All with the lock held on entry and exit.
  void Progress();
  Status WaitLocked(Handle handle, Duration timeout, std::unique_lock<std::mutex>& lock);
  Status WaitDone(Handle handle, Duration timeout, std::unique_lock<std::mutex>& lock);
  bool SpinFor(Operation* op);
  void Idle(Operation* op, TimePoint deadline, std::unique_lock<std::mutex>& lock);
  void WarnIfStalled(Operation* op, TimePoint now);
  std::string MissingRanks(const TensorName& name) const;

  Peers& peers_;
  Backend& backend_;
  const EngineOptions options_;
  const uint32_t rank_;
  const uint32_t size_;

  std::mutex mutex_;
  NameTable names_;
  OperationTable operations_;
  std::deque<Operation*> unsent_;       // in order of submission
  std::vector<Operation*> running_;     // started, not complete
  std::vector<const Detail*> details_;  // scratch of Agree
  uint32_t sleepers_ = 0;               // threads asleep in Idle
  Status closed_;                       // not ok: the engine serves no more
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_ENGINE_H_
