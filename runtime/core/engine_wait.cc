// Progress and waiting: spinning, yielding, sleeping.
#include <sched.h>

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/relax.h"
#include "runtime/base/text/comma_separated.h"
#include "runtime/base/text/format.h"
#include "runtime/core/engine.h"
#include "runtime/core/request/request_text.h"
#include "runtime/core/stall_limits.h"

namespace hvd {
namespace {

constexpr int64_t kSleepNs = 100'000'000;
// A device does not ring a bell when it is done.
constexpr int64_t kDeviceSleepNs = 100'000;
// For other hosts: a shutdown by another thread may have to wait that long.
constexpr Duration kHostsSleep = std::chrono::milliseconds(20);
// Shorter waits are not recorded.
constexpr Duration kNotedAfter = std::chrono::milliseconds(100);
// Less than the interval between two checks of the runtime thread.
constexpr Duration kLeftAloneAfter = std::chrono::milliseconds(50);
// A pause can take longer than a peer that is about to answer, so the first polls have none.
constexpr uint32_t kEagerSpins = 50;
// Polling other hosts costs a system call or two.
constexpr uint32_t kCostOfHosts = 32;

}  // namespace

Result<bool> Engine::Poll(Handle handle) {
  MutexLock lock(mutex_);
  express_.FallBack();
  const uint64_t call = ++calls_;
  Operation* op = state_.operations.Find(handle);
  if (op == nullptr) {
    const Status unknown = state_.operations.UnknownHandle(handle);
    if (unknown.code() == Code::kAborted) return true;  // Wait returns this error at once
    return unknown;
  }
  const bool finished = op->retired;
  if (!op->done) progress_.MakeProgress();
  if (!op->done) progress_.FailWhatNeedsLeavers();
  state_.finished.RetireUpTo(call);
  return finished;
}

Status Engine::Wait(Handle handle, Duration timeout, OperationResult* result) {
  MutexLock lock(mutex_);
  express_.FallBack();
  const uint64_t call = ++calls_;
  state_.finished.RetireUpTo(call);
  return WaitLocked(handle, timeout, result, call);
}

Status Engine::WaitLocked(Handle handle, Duration timeout, OperationResult* result, uint64_t call,
                          bool looked) {
  const TraceLog::Wait noted = trace_.wants_waits() ? NoteWait(handle) : TraceLog::Wait{};
  ++waiting_;
  Result<Operation*> waited = WaitDone(handle, timeout, looked);
  --waiting_;
  trace_.WaitEnded(noted);
  // This thread also advances the other started operations: peers may wait for them.
  if (!progress_.idle()) progress_.AdvanceOthers(nullptr);
  if (!progress_.idle()) hosts_.Rest();
  state_.finished.RetireUpTo(call);
  // A wait that continues in another call is still the same one.
  if (waited.ok() || waited.status().code() != Code::kInProgress) waits_.EndWait();
  if (!waited.ok()) return waited.status();
  Operation* op = *waited;
  Status status = std::move(op->status);
  if (result != nullptr && status.ok()) {
    *result = TakeResult(op);
  } else {
    executor_.FreeOutputs(op);
  }
  state_.operations.Release(op);
  return status;
}

TraceLog::Wait Engine::NoteWait(Handle handle) {
  const Operation* op = state_.operations.Find(handle);
  return op == nullptr ? TraceLog::Wait{} : trace_.WaitBegun(*op);
}

// The operation once it is done, with any result.
Result<Operation*> Engine::WaitDone(Handle handle, Duration timeout, bool looked) {
  TimePoint deadline = TimePoint::max();
  bool deadline_set = timeout.count() < 0;
  for (;;) {
    Operation* op = state_.operations.Find(handle);
    if (op == nullptr) return state_.operations.UnknownHandle(handle);
    if (op->done || (!looked && SpinFor(op))) return op;
    progress_.AdvanceOthers(op);
    if (op->done) return op;
    TimePoint now = clock_.Now();
    if (!deadline_set) {
      deadline = now + timeout;
      deadline_set = true;
    }
    if (now >= deadline) return Status(Code::kInProgress, "still waiting");
    if (WaitForHosts(op, deadline)) continue;
    Idle(op, deadline, looked ? 0 : Policy().yields);
    looked = false;
  }
}

bool Engine::SetCallback(Handle handle, DoneCallback callback) {
  MutexLock lock(mutex_);
  Operation* op = state_.operations.Find(handle);
  if (op == nullptr) return false;
  state_.callbacks.Add(op, callback);
  return true;
}

std::optional<EndedOperation> Engine::PopEnded() {
  MutexLock lock(mutex_);
  express_.FallBack();
  ++waiting_;
  bool looked = false;
  while (!state_.callbacks.has_done()) {
    Operation* op = state_.callbacks.oldest();
    if (op == nullptr) break;
    for (uint32_t spin = 0; !Check(op) && !looked && spin < Policy().spins; ++spin) Relax();
    progress_.AdvanceOthers(nullptr);
    if (!state_.callbacks.has_done()) Idle(op, TimePoint::max(), looked ? 0 : Policy().yields);
    looked = true;
  }
  --waiting_;
  waits_.EndWait();
  Operation* op = state_.callbacks.Pop();
  if (op == nullptr) return std::nullopt;
  state_.finished.Retire(op);
  EndedOperation ended{op->callback, std::move(op->status), {}};
  if (ended.status.ok())
    ended.result = TakeResult(op);
  else
    executor_.FreeOutputs(op);
  state_.operations.Release(op);
  return ended;
}

// A thread that waits for an operation with a callback accepts any such operation.
bool Engine::IsOver(const Operation& op) const {
  return op.done || (op.callback.function != nullptr && state_.callbacks.has_done());
}

// Receives, sends and advances the operation once; true when the wait for it is over.
bool Engine::Check(Operation* op) {
  progress_.Communicate();
  if (op->done) return true;
  if (op->started)
    progress_.Advance(op);
  else
    executor_.WorkAhead(op);
  return IsOver(*op);
}

WaitPolicy Engine::Policy() const {
  const TunedSettings* tuned = options_.tuned;
  if (tuned == nullptr) [[likely]]
    return options_.wait;
  return {ChosenOr(tuned->spins, options_.wait.spins),
          ChosenOr(tuned->yields, options_.wait.yields)};
}

// True if the operation completed while this thread was spinning.
bool Engine::SpinFor(Operation* op) {
  uint32_t spins = Policy().spins;
  const bool attends = hosts_.IsFor(*op);  // polls everything that is pending: once
  if (attends) spins /= kCostOfHosts;
  for (uint32_t spin = 0;; ++spin) {
    if (Check(op) || (attends && hosts_.Attend(op))) return true;
    if (spin >= spins) return false;
    if (!progress_.idle() && !op->started) return false;  // there is other work to do
    if (spin >= kEagerSpins) Relax();
  }
}

// If this rank waits for one operation only, and that for other hosts: sleeps until something
// arrives from them, since nothing on this host is awaited. False: use another wait.
bool Engine::WaitForHosts(Operation* op, TimePoint deadline) {
  Attendance* attendance = hosts_.AlonePending(*op);
  if (attendance == nullptr) return false;
  if (hosts_.Attend(op)) return true;
  const TimePoint now = clock_.Now();
  NoteStall(op, now);
  if (op->done) return true;
  peers_.NoteSleeping(op->waiting_since.time_since_epoch().count());
  mutex_.unlock();
  const bool waited = attendance->AttendUntil(std::min(deadline, now + kHostsSleep));
  mutex_.lock();
  peers_.NoteSleeping(0);
  hosts_.HasAttended(attendance);
  return waited;
}

// Yields the core, and sleeps if that did not help.
void Engine::Idle(Operation* op, TimePoint deadline, uint32_t yields) {
  const Handle handle = op->handle();
  for (uint32_t i = 0; i < yields; ++i) {
    mutex_.unlock();
    ::sched_yield();
    mutex_.lock();
    op = state_.operations.Find(handle);
    if (op == nullptr || IsOver(*op) || Check(op) || hosts_.Attend(op)) return;
  }
  TimePoint now = clock_.Now();
  NoteStall(op, now);
  if (IsOver(*op) || !hosts_.StaysFor(*op)) hosts_.Rest();
  uint32_t token = peers_.AnnounceSleep();
  progress_.BeginSleep();
  if (!Check(op)) progress_.FailWhatNeedsLeavers();
  if (!IsOver(*op)) {
    int64_t left_ns = std::min<int64_t>(op->started && op->on_device() ? kDeviceSleepNs : kSleepNs,
                                        (deadline - now).count());
    peers_.NoteSleeping(op->waiting_since.time_since_epoch().count());
    mutex_.unlock();
    peers_.Sleep(token, left_ns);
    mutex_.lock();
    peers_.NoteSleeping(0);
  }
  progress_.EndSleep();
  peers_.EndSleep();
}

void Engine::NoteStall(Operation* op, TimePoint now) {
  const StallLimits limits{options_.stall_warning, options_.stall_shutdown};
  const Stall stall = limits.Check(op, now);
  if (waits_.on() && now - op->waiting_since >= kNotedAfter)
    waits_.NoteWait(*op,
                    op->started ? executor_.AwaitedBy(*op)
                                : AwaitedRanks{state_.rounds.MissingRanks(*op->name), false},
                    state_, now);
  if (stall == Stall::kNone) return;
  trace_.Stalled(*op, now - op->waiting_since);
  const auto waited = std::chrono::duration_cast<std::chrono::seconds>(now - op->waiting_since);
  const std::string missing = CommaSeparated(state_.rounds.MissingRanks(*op->name));
  std::string sentence =
      Format("rank {} has waited {} s in {} {}", state_.WorldRank(peers_.rank()), waited.count(),
             Quoted(op->name->text),
             missing.empty() ? executor_.Awaits(*op) : "for rank " + missing + " to submit it");
  if (stall == Stall::kWarn) return LogWarning(sentence);
  progress_.EndWorld(EndCause::kStall,
                     sentence + ", longer than HOROVOD_STALL_SHUTDOWN_TIME_SECONDS allows");
}

bool Engine::TryProgress() {
  if (!mutex_.try_lock()) return false;
  MutexLock lock(mutex_, std::adopt_lock);
  if (express_.open()) return false;  // its thread comes back at once
  progress_.Communicate();
  // Devices work while the application computes, so ready work is enqueued meanwhile.
  const bool at_work = options_.devices != nullptr && progress_.AdvanceDevices();
  if (IsLeftAlone()) progress_.AdvanceOthers(nullptr);
  return at_work || progress_.has_unsent();
}

bool Engine::IsLeftAlone() {
  const TimePoint now = clock_.Now();
  if (waiting_ == 0 && calls_ == calls_seen_) return now - seen_at_ >= kLeftAloneAfter;
  calls_seen_ = calls_;
  seen_at_ = now;
  return false;
}

void Engine::Close(std::string reason) {
  MutexLock lock(mutex_);
  express_.FallBack();
  // Peers may be using the memory of this rank: lets them finish before it goes away.
  const TimePoint deadline = clock_.Now() + options_.last_work;
  while (!progress_.idle() && progress_.closed().ok() && clock_.Now() < deadline) {
    progress_.MakeProgress();
    if (!progress_.idle()) ::sched_yield();
  }
  progress_.Close(std::move(reason));
}

}  // namespace hvd
