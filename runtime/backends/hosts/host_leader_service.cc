#include "runtime/backends/hosts/host_leader_service.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "runtime/backends/hosts/batch_executor.h"
#include "runtime/base/log.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr Duration kCauseLook = std::chrono::milliseconds(20);
// Interval between checks of a thread that waits for a message in place of the negotiation thread.
constexpr Duration kHeldYield = std::chrono::milliseconds(2);
// Multiple of HostLeaderOptions::attendance_timeout, for a thread that keeps coming back, or that
// computes a sum: it checks for messages itself meanwhile (AttendUntil).
constexpr int kMostYields = 4;
constexpr int kTries = 50;

// The report of an operation with its part of a sum, which is moved out of the operation.
OfferMessage OfferOf(LeaderOp& op) {
  MessageBytes sum = std::exchange(op.ready.sum, {});
  op.offered_bytes = sum.size();
  OfferMessage offer{op.ready};
  offer.ready.sum = std::move(sum);
  return offer;
}

Status Execute(const BatchTurn& turn, const BatchExecutor::Surroundings& around, uint32_t rank) {
  if (turn.begun != nullptr) return turn.begun->Finish(around.given_up);
  return BatchExecutor(around, turn.batch.msg, rank).Run(turn.batch.ops);
}

// A connection usually breaks because a process died, which the launcher is about to report. A rank
// that leaves no longer needs a cause: `leaves` waits for a moment, and returns whether it does.
Status FirstCause(const Status& status, const HostLeaderOptions& options,
                  const std::function<bool()>& leaves) {
  const TimePoint deadline = SteadyNow() + options.cause_grace;
  do {
    if (std::optional<std::string> why = options.broken()) return Aborted(*why);
  } while (SteadyNow() < deadline && !leaves());
  if (status.code() == Code::kAborted) return status;
  return Aborted("the work with the other hosts failed: " + status.message());
}

}  // namespace

void EndProcess(const std::string& why) {
  LogError(why + "; the process ends itself");
  std::abort();
}

HostLeaderService::HostLeaderService(InterHostComm& comm, SharedHeap& heap,
                                     HostLeaderOptions options)
    : comm_(comm),
      heap_(heap),
      options_(std::move(options)),
      sleep_(comm),
      publisher_(heap, {options_.chunk_limit,
                        [this] {
                          sleep_.NotePublished();
                          options_.wake_host();
                        },
                        [this] { return options_.broken().has_value(); },
                        [this] { return !failure().ok(); }}),
      turns_(comm, options_.map.rank),
      negotiator_(comm, options_, publisher_, *this) {
  MutexLock negotiating(negotiating_);
  MutexLock lock(mutex_);
  if (negotiator_.watches_neighbours()) StartThreads();
}

void HostLeaderService::Leave() {
  AbortIfBroken();
  {
    MutexLock lock(mutex_);
    if (leaving_) return;
    leaving_ = true;
    turns_.EndAttending();
    changed_.notify_all();
    summoned_.notify_all();
    if (!negotiation_.joinable() && closed_.ok()) closed_ = Aborted("the world was shut down");
  }
  comm_.Wake();
  if (negotiation_.joinable()) negotiation_.join();
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (work_.joinable()) work_.join();
}

void HostLeaderService::StartThreads() {
  if (negotiation_.joinable()) return;
  negotiation_ = std::thread([this] { Negotiate(); });
  work_ = std::thread([this] { Work(); });
}

uint64_t HostLeaderService::Post(std::shared_ptr<LeaderOp> op) {
  Status closed;
  uint64_t ticket = 0;
  {
    MutexLock lock(mutex_);
    closed = closed_;
    ticket = op->ready.ticket = next_ticket_++;
    if (closed.ok()) {
      StartThreads();
      op->Begin({.activity = TraceActivity::kWaitForHosts});
      const bool joins = op->ready.collective == Collective::kJoin && op->ready.failure.ok();
      if (joins) {
        outbox_.emplace_back(JoinMessage{ticket, op->last_here});
      } else if (!op->ready.note.empty() || op->ready.participants != 0) {
        outbox_.emplace_back(AgreeMessage{op->ready});
      } else if (!op->ready.sum.empty()) {
        outbox_.emplace_back(OfferOf(*op));
      } else {
        outbox_.emplace_back(op->ready);
      }
      posted_.push_back(op);
    }
  }
  if (closed.ok()) {
    sleep_.Interrupt();
  } else {
    publisher_.PublishFailure(*op, closed);
  }
  return ticket;
}

void HostLeaderService::Withdraw(uint64_t ticket, std::string why) {
  if (AbortIfBroken()) return;
  {
    MutexLock lock(mutex_);
    if (!closed_.ok() || !negotiation_.joinable()) return;
    outbox_.push_back(WithdrawMessage{ticket, std::move(why)});
  }
  sleep_.Interrupt();
}

void HostLeaderService::LetGo(LeaderOp& op, LeaderTensor& part) {
  AbortIfBroken();
  MutexLock lock(mutex_);
  if (op.use == LeaderOp::Use::kNotYet) {
    const size_t bytes = part.call.bytes();
    part.copy = std::make_unique_for_overwrite<std::byte[]>(bytes);
    if (bytes != 0) std::memcpy(part.copy.get(), part.input, bytes);
    part.input = part.output = part.copy.get();
  } else if (op.use == LeaderOp::Use::kInFlight) {
    turns_.EndAttending();
    changed_.notify_all();
    const auto over = [&op] { return op.use == LeaderOp::Use::kOver; };
    if (failure_.ok() && released_.wait_for(lock, options_.last_exchange, over)) return;
    lock.unlock();
    comm_.Abort(Aborted(Format("rank {} gave up '{}' on its way to other hosts", options_.map.rank,
                               op.ready.name)));
    lock.lock();
    if (released_.wait_for(lock, options_.let_go_limit, over)) return;
    lock.unlock();
    options_.end_process(
        Format("rank {} cannot have the memory of '{}' back: the work with other hosts was aborted "
               "and still holds it; going on could change what is in it",
               options_.map.rank, op.ready.name));
  }
}

void HostLeaderService::Abort(const Status& why) {
  {
    MutexLock lock(mutex_);
    if (stopping_) return;
    if (closed_.ok()) closed_ = why;
    if (failure_.ok()) failure_ = why;
  }
  comm_.Abort(why);
}

// The launcher's report may reach this host first. Then other hosts receive the cause from this
// one.
bool HostLeaderService::AbortIfBroken() {
  const std::optional<std::string> why = options_.broken();
  if (why) Abort(Aborted(*why));
  return why.has_value();
}

Status HostLeaderService::failure() {
  MutexLock lock(mutex_);
  return failure_;
}

void HostLeaderService::NoteFailure(const Status& why) {
  MutexLock lock(mutex_);
  if (failure_.ok()) failure_ = why;
}

// ---- waiting threads

bool HostLeaderService::BeginAttending() {
  MutexLock lock(mutex_);
  const bool at_work = closed_.ok() && !leaving_ && negotiation_.joinable();
  return comm_.steps() != nullptr && at_work && turns_.BeginAttending();
}

bool HostLeaderService::TryNegotiation(bool patiently) {
  for (int tries = 0;; ++tries) {
    if (negotiating_.try_lock()) return true;
    sleep_.Interrupt();  // the negotiation thread yields
    if (!patiently || tries == kTries) return false;
    ::sched_yield();
  }
}

void HostLeaderService::Attend() {
  if (!BeginAttending()) return;
  sleep_.NoteCheck();
  bool well = true;
  if (TryNegotiation(/*patiently=*/false)) {
    MutexLock negotiating(negotiating_, std::adopt_lock);
    well = negotiator_.Poll(TimePoint{});
  }
  StepBatches(TimePoint{});
  if (!well) Rest();
}

bool HostLeaderService::AttendUntil(TimePoint deadline) {
  if (!BeginAttending()) return false;
  bool begun = false;
  {
    MutexLock lock(mutex_);
    begun = turns_.has_begun();
  }
  if (begun) {  // and back in time to check for other events
    StepBatches(std::min(deadline, SteadyNow() + options_.attendance_timeout / 2));
    return true;
  }
  if (!TryNegotiation(/*patiently=*/true)) return false;
  bool well = true;
  {
    MutexLock negotiating(negotiating_, std::adopt_lock);
    if (sleep_.BeginHold()) {
      well = negotiator_.Poll(deadline);
      MutexLock lock(mutex_);
      turns_.Come();
    }
    sleep_.EndHold();
  }
  if (well) {
    StepBatches(TimePoint{});
  } else {
    Rest();
  }
  return well;
}

void HostLeaderService::Rest() {
  bool work = false;
  {
    MutexLock lock(mutex_);
    if (!turns_.EndAttending()) return;
    work = turns_.has_work();
  }
  summoned_.notify_all();
  if (work) changed_.notify_all();
}

void HostLeaderService::StepBatches(TimePoint deadline) {
  while (std::unique_ptr<SteppedBatch> batch = PopStep()) {
    Status done = batch->Continue(deadline);
    if (!done.ok()) return PutBack(std::move(batch));
    Conclude(batch->batch(), done);
    PutBack(nullptr);
  }
}

// Null: there is nothing that may be done here.
std::unique_ptr<SteppedBatch> HostLeaderService::PopStep() {
  std::unique_ptr<SteppedBatch> batch;
  bool for_thread = false;
  {
    MutexLock lock(mutex_);
    batch = turns_.PopStep();
    for_thread = !turns_.working() && turns_.has_work();
  }
  if (for_thread) changed_.notify_all();
  return batch;
}

// `batch`: null when it is over.
void HostLeaderService::PutBack(std::unique_ptr<SteppedBatch> batch) {
  bool for_thread = false;
  {
    MutexLock lock(mutex_);
    turns_.PutBack(std::move(batch));
    for_thread = turns_.MayWork() || stopping_;
  }
  if (for_thread) changed_.notify_all();
}

// ---- what the negotiation thread does, needs and finds

void HostLeaderService::Negotiate() {
  for (bool serves = true; serves;) {
    Yield();
    if (!negotiating_.try_lock()) {
      // A thread that attends has come back. If this one waited for the lock, that one would have
      // to wake it at each release.
      MutexLock lock(mutex_);
      summoned_.wait_for(lock, options_.attendance_timeout);
      continue;
    }
    MutexLock negotiating(negotiating_, std::adopt_lock);
    serves = negotiator_.Serve();
    if (!serves) negotiator_.Finish();
  }
  Rest();
}

// Returns when no thread attends.
void HostLeaderService::Yield() {
  sleep_.End();
  MutexLock lock(mutex_);
  if (!turns_.attended()) return;
  for (int times = 1; turns_.attended(); times = std::min(2 * times, kMostYields)) {
    turns_.Expect();
    const Duration usual = options_.attendance_timeout * (turns_.working() ? kMostYields : times);
    summoned_.wait_for(lock, sleep_.held() ? kHeldYield : usual,
                       [this]() HVD_REQUIRES(mutex_) { return !turns_.attended(); });
    if (!sleep_.held() && !turns_.came()) turns_.EndAttending();
  }
  if (turns_.has_work()) changed_.notify_all();
}

NegotiatorRequests HostLeaderService::PopRequests(bool sleeps) {
  if (sleeps) sleep_.Begin();  // before the check for requests
  NegotiatorRequests requests;
  MutexLock lock(mutex_);
  requests.posted.swap(posted_);
  requests.outbox.swap(outbox_);
  requests.leaving = leaving_;
  const bool alone = sleeps && !sleep_.held_by_caller();
  if (alone && turns_.EndAttending() && turns_.has_work()) changed_.notify_all();
  return requests;
}

void HostLeaderService::OnBatch(LeaderBatch&& batch) {
  for (const LeaderOpPointer& op : batch.ops) op->Begin({.activity = TraceActivity::kQueue});
  bool for_thread = false;
  {
    MutexLock lock(mutex_);
    turns_.Add(std::move(batch));
    for_thread = turns_.MayWork();
  }
  if (for_thread) changed_.notify_all();
}

Status HostLeaderService::OnClosed(const Status& why) {
  MutexLock lock(mutex_);
  if (closed_.ok()) closed_ = why;
  return closed_;
}

// ---- working

void HostLeaderService::Work() {
  const auto given_up = [this] { return options_.broken().has_value() || !failure().ok(); };
  for (;;) {
    BatchTurn turn;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock, [this]() HVD_REQUIRES(mutex_) {
        return turns_.MayWork() || (stopping_ && !turns_.working() && !turns_.has_work());
      });
      if (!turns_.has_work()) return;
      turn = turns_.BeginTurn();
    }
    Conclude(turn.whole(),
             Execute(turn, {comm_, heap_, options_.idle_limit, given_up}, options_.map.rank));
    MutexLock lock(mutex_);
    turns_.EndTurn();
  }
}

// No thread uses the callers' memory any more.
void HostLeaderService::Conclude(const LeaderBatch& batch, const Status& status) {
  {
    MutexLock lock(mutex_);
    for (const LeaderOpPointer& op : batch.ops) op->use = LeaderOp::Use::kOver;
  }
  released_.notify_all();
  if (!status.ok()) {
    const Status why = OnFailed(status);
    for (const LeaderOpPointer& op : batch.ops) publisher_.PublishFailure(*op, why);
    return;
  }
  publisher_.PublishResults(batch.ops);
  if (batch.msg.number == 0 || batch.msg.leaders[0] != options_.map.rank) return;
  {
    MutexLock lock(mutex_);
    outbox_.push_back(DoneMessage{batch.msg.number});
  }
  sleep_.Interrupt();
}

// ---- ends

Status HostLeaderService::OnFailed(const Status& status) {
  Status why;
  {
    MutexLock lock(mutex_);
    why = closed_;
  }
  const auto leaves = [this] {
    MutexLock lock(mutex_);
    if (!leaving_) changed_.wait_for(lock, kCauseLook);
    return leaving_;
  };
  if (why.ok()) why = OnClosed(FirstCause(status, options_, leaves));
  NoteFailure(why);
  comm_.Abort(why);
  return why;
}

}  // namespace hvd
