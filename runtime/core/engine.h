// Engine: submit -> negotiate -> execute -> complete, on one rank, for every process set.
//
// A submitted tensor is announced to the peers by name; whoever hears the last announcement knows,
// without asking anybody, that the tensor is ready, because every rank hears every announcement.
// Ranks may submit in any order. There is no cycle and no coordinator; THREADS.md says which thread
// does what. "Peer" is a number in Peers, that is, a rank of this host; what has to be said to
// other hosts is the backend's.
//
// All public members are thread-safe: calls of several threads are taken one after the other.
// Submit, Poll and TryProgress never block: one thread can drive many engines.
//
// Submission is asynchronous, also where the work is done at once: an operation is *done* when its
// result is there, and *retired*, which is when its name is free and Poll says so, by a later call
// of the application. So a caller sees the same whichever rank came last and whatever the runtime
// thread did meanwhile.
#ifndef HVD_RUNTIME_CORE_ENGINE_H_
#define HVD_RUNTIME_CORE_ENGINE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/backends/backend.h"
#include "runtime/backends/peers.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/core/message.h"
#include "runtime/core/name_table.h"
#include "runtime/core/operation.h"
#include "runtime/core/process_set.h"
#include "runtime/core/request.h"
#include "runtime/core/wait_policy.h"
#include "runtime/device/shared_heap.h"

namespace hvd {

struct EngineOptions {
  WaitPolicy wait;
  Duration stall_warning = std::chrono::seconds(60);  // 0: never
  Duration stall_shutdown{0};                         // 0: never
  // How long a rank that closes goes on with what its peers already work on.
  Duration last_work = std::chrono::milliseconds(200);
  // An allreduce divides its average by the ranks that have not joined, not by the size of the set.
  bool average_of_active = false;
  uint32_t handles_given = 0;    // by the engines before this one, see Engine::handles_given
  const Clock* clock = nullptr;  // null: the machine's
  // Tells the launcher that this rank ends the world, and why, before anybody else can be told. May
  // be empty; called with the engine's lock held.
  std::function<void(const std::string& reason)> tell_ending = {};
};

class Engine {
 public:
  using Handle = Operation::Handle;

  // `world` is set 0 as this rank sees it. Peers, backend and heap (of the outputs that the backend
  // makes) outlive the engine.
  Engine(Peers& peers, Backend& backend, SharedHeap& heap, Group world, EngineOptions options);
  ~Engine();
  Engine(const Engine&) = delete;

  // Announces a request. Its memory must stay valid until the handle is done.
  Result<Handle> Submit(const RequestSpec& spec);
  // The handle's result has the id of the new set. `ranks` in any order, none twice.
  Result<Handle> SubmitAddProcessSet(std::span<const uint32_t> ranks);
  Result<Handle> SubmitRemoveProcessSet(int32_t id);

  // Whether the operation had finished when the call came, so never at the first call after Submit;
  // then makes progress. True: Wait returns at once. kInvalidArgument for an unknown handle.
  Result<bool> Poll(Handle handle);

  // kInProgress after `timeout` (negative: never); any other result forgets the handle. Outputs
  // that the runtime made are freed where `result` is null.
  Status Wait(Handle handle, Duration timeout, OperationResult* result = nullptr);

  // For the next engine of this process, so that its handles are unlike all of this one.
  uint32_t handles_given();

  // Submit and Wait without limit, in one go.
  Status Run(const RequestSpec& spec);

  // Hears what peers announced and sends what had no room: for the runtime thread, so that peers
  // are not held up while the application computes. True if something is still unsent. Does nothing
  // while another thread is at work.
  bool TryProgress();

  // Fails what is in flight, and everything submitted from now on, with this sentence.
  void Close(std::string reason);

  // Ids ascending; world ranks of a set, ascending; nothing for an unknown set.
  std::vector<int32_t> ProcessSetIds();
  std::optional<std::vector<uint32_t>> ProcessSetRanks(int32_t id);
  // Size of a set and this rank's number in it; -1 for an unknown set and for a non-member.
  int32_t ProcessSetSize(int32_t id);
  int32_t ProcessSetRank(int32_t id);

 private:
  // engine.cc: submitting and waiting. All with the lock held on entry and exit.
  Result<Operation*> SubmitLocked(const RequestSpec& spec);
  Result<Operation*> SubmitToSet(ProcessSet* set, const RequestSpec& spec);
  Result<Operation*> SubmitNamed(ProcessSet* set, const RequestSpec& spec);
  Result<Operation*> SubmitOn(ProcessSet* set, const RequestSpec& spec);
  Result<ProcessSet*> SetOf(const RequestSpec& spec) const;
  Status AlreadyInFlight(const TensorName& name) const;
  void Launch(Operation* op, const RequestSpec& spec);
  void Describe(TensorName* name, const RequestSpec& spec);
  Status PrepareOp(Operation* op, const RequestSpec& spec);
  Status PreparePart(Operation* op, OperationPart* part, const CollectiveCall& call,
                     const TensorSpec* tensor);

  // engine_wait.cc: progress and waiting, likewise.
  void MakeProgress();
  void Progress();
  Status WaitLocked(Handle handle, Duration timeout, OperationResult* result, uint64_t call,
                    std::unique_lock<std::mutex>& lock);
  void RetireUpTo(uint64_t call) {
    if (!done_.empty()) RetireSome(call);
  }
  void RetireSome(uint64_t call);
  void Retire(Operation* op);
  Status UnknownHandle(Handle handle) const;
  Result<Operation*> WaitDone(Handle handle, Duration timeout, std::unique_lock<std::mutex>& lock);
  bool SpinFor(Operation* op);
  void Idle(Operation* op, TimePoint deadline, std::unique_lock<std::mutex>& lock);
  void NoteStall(Operation* op, TimePoint now);
  std::string Awaits(const Operation& op) const;
  std::string MissingRanks(const TensorName& name) const;
  void FreeOutputs(Operation* op);

  // engine_send.cc: telling the peers.
  bool Announce(Operation* op);
  bool SendPieces(Operation* op);
  void AnnounceUnsent();
  void EndWorld(std::string sentence);
  void SendAbortNotice();

  // engine_receive.cc: what the peers tell. False: the message has to wait where it is.
  void Receive();
  bool ReceiveNext(uint32_t peer);
  bool TakePiece(uint32_t peer, std::span<const std::byte> record);
  bool TakeRequest(uint32_t peer, std::span<const std::byte> message);
  bool Define(uint32_t peer, const IncomingRequest& request, Status* sound);
  bool Arrive(uint32_t peer, TensorName* name, const IncomingRequest& request);
  void KeepPayloads(TensorName* name, uint32_t member);
  void Damaged(uint32_t peer, const Status& what);

  // engine_rounds.cc: executing.
  bool Ready(const TensorName& name) const;
  void Start(TensorName* name);
  Status Agree(TensorName* name);
  Status StartParts(Operation* op);
  Status StartCrossHost(Operation* op, const Status& agreed);
  MemberInputs PartsOf(const TensorName& name, size_t part);
  void FailHere(Operation* op, const Status& status);
  void Advance(Operation* op);
  void AdvanceOthers(const Operation* except);
  void Complete(Operation* op, Status status, bool peers_may_work);
  void FailAll(const Status& status);
  void FailWhatNeedsLeavers();
  bool WaitsInVainFor(uint32_t peer, const Operation& op) const;
  bool Unsatisfiable(const TensorName& name) const;
  void FailUnsatisfiable(Operation* op);
  uint32_t MemberOf(const TensorName& name, uint32_t peer) const {
    return name.set->index_of_peer[peer];
  }
  uint32_t WorldRank(uint32_t peer) const {
    const Group& world = sets_.world().group;
    return world.ranks[world.local_to_group[peer]];
  }

  // engine_joins.cc: what changes who takes part.
  Status CheckNotJoined() const;
  void NoteJoined(uint32_t peer);
  void SettleRounds();
  void DiscardIfOver(TensorName* name);
  bool SetsAreChanging(uint32_t peer) const;
  uint32_t AbsentMembers(const TensorName& name) const;
  Status CheckJoined(const TensorName& name) const;
  uint32_t LastJoined(const TensorName& name) const;
  void FinishJoin(Operation* op);
  void ForgetJoins();
  void ChangeSets(Operation* op, const Detail& detail, bool agreed);
  void FailPendingOn(const ProcessSet* set);

  Peers& peers_;
  Backend& backend_;
  SharedHeap& heap_;
  const EngineOptions options_;
  const Clock& clock_;
  const uint32_t self_;   // number in Peers
  const uint32_t count_;  // of ranks on this host

  std::mutex mutex_;
  ProcessSetTable sets_;
  NameTable names_;
  OperationTable operations_;
  std::deque<Operation*> unsent_;     // in order of submission
  std::vector<Operation*> running_;   // started, not complete
  std::vector<Operation*> done_;      // complete, not retired
  uint64_t calls_ = 0;                // of the application, so far: Submit, Run, Poll, Wait
  std::vector<Assembly> assemblies_;  // per peer
  std::vector<uint8_t> joined_;       // per peer: it has joined, the world has not
  uint32_t joined_count_ = 0;         // of peers, this rank among them
  std::vector<uint32_t> gone_;        // peers that have left and said all they had to say
  std::string abort_notice_;          // the world ends with this sentence, which is not sent yet
  std::vector<RankDetail> details_;   // scratch of Agree
  std::vector<BufferDescriptor> part_descriptors_;  // scratch of PartsOf, as are the next two
  std::vector<Extent> extents_;
  std::vector<uint8_t> absent_;
  uint32_t sleepers_ = 0;  // threads asleep in Idle
  Status closed_;          // not ok: the engine serves no more
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_ENGINE_H_
