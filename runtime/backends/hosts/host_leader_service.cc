#include "runtime/backends/hosts/host_leader_service.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/backends/hosts/batch_executor.h"
#include "runtime/base/log.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr Duration kCauseLook = std::chrono::milliseconds(20);

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
      publisher_(heap, {options_.chunk_limit, options_.wake_host,
                        [this] { return options_.broken().has_value(); },
                        [this] { return !failure().ok(); }}),
      negotiator_(comm, options_, publisher_, *this) {
  MutexLock lock(mutex_);
  if (negotiator_.watches_neighbours()) StartThreads();
}

void HostLeaderService::Leave() {
  AbortIfBroken();
  {
    MutexLock lock(mutex_);
    if (leaving_) return;
    leaving_ = true;
    changed_.notify_all();
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
  negotiation_ = std::thread([this] { negotiator_.Run(); });
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
      outbox_.push_back(joins ? Coordination(JoinMessage{ticket, op->last_here})
                              : Coordination(op->ready));
      posted_.push_back(op);
    }
  }
  if (closed.ok()) {
    comm_.Wake();
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
  comm_.Wake();
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
    lock.unlock();
    comm_.Abort(Aborted(Format("rank {} gave up '{}' on its way to other hosts", options_.map.rank,
                               op.ready.name)));
    lock.lock();
    const auto over = [&op] { return op.use == LeaderOp::Use::kOver; };
    if (changed_.wait_for(lock, options_.let_go_limit, over)) return;
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

Status HostLeaderService::closed() {
  MutexLock lock(mutex_);
  return closed_;
}

Status HostLeaderService::failure() {
  MutexLock lock(mutex_);
  return failure_;
}

void HostLeaderService::NoteFailure(const Status& why) {
  MutexLock lock(mutex_);
  if (failure_.ok()) failure_ = why;
}

// ---- what the negotiation thread needs and finds out

NegotiatorOrders HostLeaderService::TakeOrders() {
  NegotiatorOrders orders;
  MutexLock lock(mutex_);
  orders.posted.swap(posted_);
  orders.outbox.swap(outbox_);
  orders.leaving = leaving_;
  return orders;
}

void HostLeaderService::OnBatch(LeaderBatch batch) {
  for (const LeaderOpPointer& op : batch.ops) op->Begin({.activity = TraceActivity::kQueue});
  {
    MutexLock lock(mutex_);
    batches_.push_back(std::move(batch));
  }
  changed_.notify_all();
}

Status HostLeaderService::OnClosed(const Status& why) {
  MutexLock lock(mutex_);
  if (closed_.ok()) closed_ = why;
  return closed_;
}

// ---- working

void HostLeaderService::Work() {
  for (;;) {
    LeaderBatch batch;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock, [this]() HVD_REQUIRES(mutex_) { return stopping_ || !batches_.empty(); });
      if (batches_.empty()) return;
      batch = std::move(batches_.front());
      batches_.pop_front();
    }
    Carry(batch);
  }
}

bool HostLeaderService::GivenUp() { return options_.broken().has_value() || !failure().ok(); }

void HostLeaderService::Note(const LeaderBatch& batch, LeaderOp::Use use) {
  {
    MutexLock lock(mutex_);
    for (const LeaderOpPointer& op : batch.ops) op->use = use;
  }
  changed_.notify_all();
}

void HostLeaderService::Carry(const LeaderBatch& batch) {
  BatchExecutor executor({comm_, heap_, options_.idle_limit, [this] { return GivenUp(); }},
                         batch.msg, options_.map.rank);
  Note(batch, LeaderOp::Use::kInFlight);
  Status carried = executor.Run(batch.ops);
  Note(batch, LeaderOp::Use::kOver);
  if (!carried.ok()) {
    Die(carried);
    const Status why = closed();
    for (const LeaderOpPointer& op : batch.ops) publisher_.PublishFailure(*op, why);
    return;
  }
  publisher_.PublishResults(batch.ops);
  if (batch.msg.leaders[0] != options_.map.rank) return;
  {
    MutexLock lock(mutex_);
    outbox_.push_back(DoneMessage{batch.msg.number});
  }
  comm_.Wake();
}

// ---- ends

// A connection mostly breaks because a process died, which the launcher is about to report. A rank
// that leaves needs no cause any more.
Status HostLeaderService::FirstCause(const Status& status) {
  const TimePoint deadline = SteadyNow() + options_.cause_grace;
  for (;;) {
    if (std::optional<std::string> why = options_.broken()) return Aborted(*why);
    MutexLock lock(mutex_);
    if (leaving_ || SteadyNow() >= deadline) break;
    changed_.wait_for(lock, kCauseLook);
  }
  if (status.code() == Code::kAborted) return status;
  return Aborted("the work with the other hosts failed: " + status.message());
}

void HostLeaderService::Die(const Status& status) {
  Status why = closed();
  if (why.ok()) {
    why = FirstCause(status);
    MutexLock lock(mutex_);
    if (closed_.ok()) closed_ = why;
    why = closed_;
  }
  NoteFailure(why);
  comm_.Abort(why);
}

}  // namespace hvd
