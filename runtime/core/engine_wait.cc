// Waiting: looking, giving the core away, sleeping.
#include <sched.h>

#include <algorithm>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/relax.h"
#include "runtime/core/engine.h"
#include "runtime/core/request_text.h"

namespace hvd {
namespace {

constexpr int64_t kSleepNs = 100'000'000;
// A pause can take longer than a peer that is about to answer, so the first looks come without.
constexpr uint32_t kEagerSpins = 50;

}  // namespace

Status Engine::UnknownHandle(Handle handle) const {
  const uint32_t generation = Operation::GenerationOf(handle);
  if (generation != 0 && generation <= options_.handles_given) return WorldIsOver(handle);
  return InvalidArgument("unknown handle " + std::to_string(handle));
}

void Engine::Progress() {
  if (peers_.broken()) {
    if (closed_.ok()) FailAll(Aborted(peers_.broken_text()));
    return;
  }
  Receive();
  if (!unsent_.empty()) AnnounceUnsent();
  if (!abort_notice_.empty()) SendAbortNotice();
}

void Engine::MakeProgress() {
  Progress();
  AdvanceOthers(nullptr);
}

Result<bool> Engine::Poll(Handle handle) {
  std::lock_guard lock(mutex_);
  const uint64_t call = ++calls_;
  Operation* op = operations_.Find(handle);
  if (op == nullptr) {
    const Status unknown = UnknownHandle(handle);
    if (unknown.code() == Code::kAborted) return true;  // which a wait says at once
    return unknown;
  }
  const bool finished = op->retired;
  if (!op->done) MakeProgress();
  if (!op->done) FailWhatNeedsLeavers();
  RetireUpTo(call);
  return finished;
}

Status Engine::Wait(Handle handle, Duration timeout, OperationResult* result) {
  std::unique_lock lock(mutex_);
  const uint64_t call = ++calls_;
  RetireUpTo(call);
  return WaitLocked(handle, timeout, result, call, lock);
}

// An operation that was submitted up to this call and is done has been done for long enough: its
// name is free. What other threads have submitted since keeps its name until their next call has
// looked for duplicates.
void Engine::RetireSome(uint64_t call) {
  size_t left = 0;
  for (Operation* op : done_) {
    if (op->call > call) {
      done_[left++] = op;
    } else {
      Retire(op);
    }
  }
  done_.resize(left);
}

void Engine::Retire(Operation* op) {
  op->retired = true;
  TensorName* name = std::exchange(op->kept_name, nullptr);
  name->kept = false;
  names_.ForgetIfUnused(name);
}

Status Engine::WaitLocked(Handle handle, Duration timeout, OperationResult* result, uint64_t call,
                          std::unique_lock<std::mutex>& lock) {
  Result<Operation*> waited = WaitDone(handle, timeout, lock);
  // Whoever is here works for everything that runs: peers may wait for it.
  if (!running_.empty()) AdvanceOthers(nullptr);
  RetireUpTo(call);
  if (!waited.ok()) return waited.status();
  Operation* op = *waited;
  Status status = std::move(op->status);
  if (result != nullptr && status.ok()) {
    *result = TakeResult(op);
  } else {
    FreeOutputs(op);
  }
  operations_.Release(op);
  return status;
}

void Engine::FreeOutputs(Operation* op) {
  for (OperationPart& part : op->parts) {
    void* made = std::exchange(part.result.made_output, nullptr);
    if (made != nullptr) heap_.Free(made);
  }
}

// The operation once it is done, with whatever result.
Result<Operation*> Engine::WaitDone(Handle handle, Duration timeout,
                                    std::unique_lock<std::mutex>& lock) {
  TimePoint deadline = TimePoint::max();
  bool deadline_set = timeout.count() < 0;
  for (;;) {
    Operation* op = operations_.Find(handle);
    if (op == nullptr) return UnknownHandle(handle);
    if (op->done || SpinFor(op)) return op;
    AdvanceOthers(op);
    if (op->done) return op;
    TimePoint now = clock_.Now();
    if (!deadline_set) {
      deadline = now + timeout;
      deadline_set = true;
    }
    if (now >= deadline) return Status(Code::kInProgress, "still waiting");
    Idle(op, deadline, lock);
  }
}

// True when the operation got done while we looked closely.
bool Engine::SpinFor(Operation* op) {
  for (uint32_t spin = 0;; ++spin) {
    Progress();
    if (!op->done && op->started) Advance(op);
    if (op->done) return true;
    if (spin >= options_.wait.spins) return false;
    if (!running_.empty() && !op->started) return false;  // there is other work to do
    if (spin >= kEagerSpins) Relax();
  }
}

// Gives the core away, and sleeps if that brought nothing.
void Engine::Idle(Operation* op, TimePoint deadline, std::unique_lock<std::mutex>& lock) {
  const Handle handle = op->handle();
  for (uint32_t i = 0; i < options_.wait.yields; ++i) {
    lock.unlock();
    ::sched_yield();
    lock.lock();
    op = operations_.Find(handle);
    if (op == nullptr || op->done) return;
    Progress();
    if (!op->done && op->started) Advance(op);
    if (op->done) return;
  }
  TimePoint now = clock_.Now();
  NoteStall(op, now);
  uint32_t token = peers_.AnnounceSleep();
  ++sleepers_;
  Progress();
  if (!op->done && op->started) Advance(op);
  if (!op->done) FailWhatNeedsLeavers();
  if (!op->done) {
    int64_t left_ns = std::min<int64_t>(kSleepNs, (deadline - now).count());
    peers_.NoteSleeping(op->waiting_since.time_since_epoch().count());
    lock.unlock();
    peers_.Sleep(token, left_ns);
    lock.lock();
    peers_.NoteSleeping(0);
  }
  --sleepers_;
  peers_.EndSleep();
}

void Engine::NoteStall(Operation* op, TimePoint now) {
  if (op->waiting_since == TimePoint{}) op->waiting_since = op->warned_at = now;
  const Duration waited = now - op->waiting_since;
  const bool too_long = options_.stall_shutdown.count() > 0 && waited >= options_.stall_shutdown;
  const bool warn =
      options_.stall_warning.count() > 0 && now - op->warned_at >= options_.stall_warning;
  if (!too_long && !warn) return;
  op->warned_at = now;
  const std::string missing = MissingRanks(*op->name);
  std::string sentence =
      "rank " + std::to_string(WorldRank(self_)) + " has waited " +
      std::to_string(std::chrono::duration_cast<std::chrono::seconds>(waited).count()) + " s in " +
      Quoted(op->name->text) + " " +
      (missing.empty() ? Awaits(*op) : "for rank " + missing + " to submit it");
  if (!too_long) return LogWarning(sentence);
  EndWorld(sentence + ", longer than HOROVOD_STALL_SHUTDOWN_TIME_SECONDS allows");
}

std::string Engine::Awaits(const Operation& op) const {
  for (const OperationPart& part : op.parts) {
    if (part.done || !op.started) continue;
    std::string text = backend_.Awaits(part.call, part.state.get());
    if (!text.empty()) return text;
  }
  return "for its data to be moved";
}

std::string Engine::MissingRanks(const TensorName& name) const {
  std::string ranks;
  if (name.operation == nullptr || name.operation->started) return ranks;
  for (uint32_t member = 0; member < name.here.size(); ++member) {
    const uint32_t peer = name.set->group.local[member];
    if (peer == self_ || name.here[member] != 0) continue;
    if (joined_[peer] != 0 && name.domain != NameTable::kJoinDomain) continue;
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(WorldRank(peer));
  }
  return ranks;
}

bool Engine::TryProgress() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  Progress();
  return !unsent_.empty() || !abort_notice_.empty();
}

void Engine::Close(std::string reason) {
  std::lock_guard lock(mutex_);
  // Peers are at work on our memory: let them finish before it goes away.
  const TimePoint deadline = clock_.Now() + options_.last_work;
  while (!running_.empty() && closed_.ok() && clock_.Now() < deadline) {
    MakeProgress();
    if (!running_.empty()) ::sched_yield();
  }
  // What still waits fails of our own wish, not of other ranks.
  if (closed_.ok()) closed_ = Aborted(std::move(reason));
  FailAll(closed_);
}

}  // namespace hvd
