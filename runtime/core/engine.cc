// Submitting and waiting.
#include "runtime/core/engine.h"

#include <algorithm>
#include <utility>

namespace hvd {
namespace {

const Clock& MachineClock() {
  static const SteadyClock clock;
  return clock;
}

}  // namespace

Engine::Engine(Peers& peers, Backend& backend, SharedHeap& heap, Group world, EngineOptions options)
    : peers_(peers),
      options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : MachineClock()),
      state_(std::move(world), peers.rank(), peers.size(), options_.handles_given),
      trace_(options_.recorder),
      executor_(peers, backend, options_.devices, heap, state_.rounds),
      admission_(state_.sets, state_.names, state_.operations, state_.joins,
                 options_.average_of_active, options_.devices != nullptr),
      progress_(peers, state_, executor_, trace_, options_.report_ending),
      express_(peers, backend, state_, executor_, admission_, progress_, trace_),
      hosts_(backend, progress_, state_),
      waits_(options_.stall_board, options_.stall_warning, options_.stall_shutdown) {}

Engine::~Engine() {
  Close("the world was shut down");
  MutexLock lock(mutex_);
  state_.operations.ForEach([this](Operation& op)
                                HVD_NO_THREAD_SAFETY_ANALYSIS { executor_.FreeOutputs(&op); });
}

// ---- submitting

Result<Engine::Handle> Engine::Submit(const RequestSpec& spec) {
  MutexLock lock(mutex_);
  express_.FallBack();
  const uint64_t call = ++calls_;
  Result<Operation*> op = SubmitLocked(spec, call, /*caller_waits=*/false);
  state_.finished.RetireUpTo(call - 1);
  if (!op.ok()) return op.status();
  const Handle handle = (*op)->handle();
  if (!progress_.idle()) progress_.MakeProgress();
  return handle;
}

uint32_t Engine::handles_given() {
  MutexLock lock(mutex_);
  return state_.operations.given();
}

Status Engine::Run(const RequestSpec& spec, Duration timeout, Handle* handle) {
  if (handle != nullptr) *handle = 0;
  MutexLock lock(mutex_);
  express_.FallBack();
  const uint64_t call = ++calls_;
  Handle submitted = 0;
  bool looked = false;
  const bool waits = timeout.count() != 0;
  if (waits && waiting_ == 0 && express_.Begin(spec, call)) {
    waits_.NoteSubmitter();
    state_.finished.RetireUpTo(call - 1);
    submitted = express_.Wait(mutex_, Policy(), &looked);
    if (submitted == 0) {
      state_.finished.RetireUpTo(call);
      return Status::Ok();
    }
    express_.FallBack();  // the round of a thread that entered meanwhile
  } else {
    Result<Operation*> op = SubmitLocked(spec, call, waits);
    state_.finished.RetireUpTo(call - 1);
    if (!op.ok()) return op.status();
    submitted = (*op)->handle();
  }
  Status status = WaitLocked(submitted, timeout, nullptr, call, looked);
  if (handle != nullptr && status.code() == Code::kInProgress) *handle = submitted;
  return status;
}

Result<Engine::Handle> Engine::SubmitAddProcessSet(std::span<const uint32_t> ranks) {
  std::vector<uint32_t> members(ranks.begin(), ranks.end());
  std::sort(members.begin(), members.end());
  RequestSpec spec;
  spec.collective = Collective::kAddProcessSet;
  spec.name = NameTable::kSetsName;
  spec.members = members;
  return Submit(spec);
}

Result<Engine::Handle> Engine::SubmitRemoveProcessSet(int32_t id) {
  RequestSpec spec;
  spec.collective = Collective::kRemoveProcessSet;
  spec.name = NameTable::kSetsName;
  spec.process_set = id;
  return Submit(spec);
}

Result<Operation*> Engine::SubmitLocked(const RequestSpec& spec, uint64_t call, bool caller_waits) {
  if (const Status& open = progress_.CheckOpen(); !open.ok()) return open;
  Result<Operation*> admitted = admission_.Admit(spec, call);
  if (!admitted.ok()) return admitted;
  waits_.NoteSubmitter();
  Operation* op = *admitted;
  peers_.NoteSubmitted(static_cast<uint32_t>(spec.collective), op->name->text);
  trace_.Admitted(op);
  // If a waiting rank yields at once, there are fewer cores than ranks.
  if (Status prepared = executor_.Prepare(op, spec, caller_waits && Policy().spins > 0);
      !prepared.ok()) {
    admission_.Cancel(op);
    return prepared;
  }
  if (spec.collective == Collective::kJoin) Joins::Stamp(op, clock_.Now());
  admission_.Commit(op, spec);
  trace_.Submitted(op, op->set->in_flight == 1);
  const bool count_last = trace_.CountsLast(*op);
  progress_.Launch(op, spec);
  if (count_last) [[unlikely]]
    CountIfLast(*op);
  return op;
}

void Engine::NoteStep() {
  MutexLock lock(mutex_);
  trace_.Step();
}

void Engine::NoteLink(uint32_t rank, uint64_t bytes, uint32_t busy_us) {
  MutexLock lock(mutex_);
  trace_.Link(rank, bytes, busy_us);
}

void Engine::NoteCommit() {
  MutexLock lock(mutex_);
  trace_.Committed();
}

// The last rank of a host to submit finds the announcements of all others.
void Engine::CountIfLast(const Operation& op) {
  if (!op.started) progress_.Communicate();
  if (op.started) trace_.CountLast();
}

// ---- process sets, for queries

std::vector<int32_t> Engine::ProcessSetIds() {
  MutexLock lock(mutex_);
  return state_.sets.Ids();
}

std::optional<std::vector<uint32_t>> Engine::ProcessSetRanks(int32_t id) {
  MutexLock lock(mutex_);
  const ProcessSet* set = state_.sets.Find(id);
  if (set == nullptr) return std::nullopt;
  return set->group.ranks;
}

int32_t Engine::ProcessSetSize(int32_t id) {
  MutexLock lock(mutex_);
  const ProcessSet* set = state_.sets.Find(id);
  return set == nullptr ? -1 : static_cast<int32_t>(set->group.size());
}

int32_t Engine::ProcessSetRank(int32_t id) {
  MutexLock lock(mutex_);
  const ProcessSet* set = state_.sets.Find(id);
  return set == nullptr || !set->member ? -1 : static_cast<int32_t>(set->group.index);
}

}  // namespace hvd
