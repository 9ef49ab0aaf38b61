#include "runtime/backends/hosts/host_leader_service.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/backends/hosts/batch_executor.h"
#include "runtime/base/log.h"

namespace hvd {
namespace {

constexpr uint32_t kCoordinator = 0;
constexpr Duration kLookAgain = std::chrono::milliseconds(100);
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
      link_(comm, options_.map.rank, options_.idle_limit) {
  const HostMap& map = options_.map;
  if (coordinates()) {
    coordinator_ = std::make_unique<Coordinator>(map, options_.compare, options_.coordinator);
  }
  for (uint32_t r = 0; r < map.host_of.size(); ++r) {
    if (r != map.rank && map.host_of[r] == map.here()) neighbours_.push_back(r);
  }
  // The first rank of each host sees its neighbours leave, whether it leads anything or not.
  const bool first_here = neighbours_.empty() || neighbours_[0] > map.rank;
  MutexLock lock(mutex_);
  if (first_here) StartThreads();
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
    comm_.Abort(Aborted("rank " + std::to_string(options_.map.rank) + " gave up '" + op.ready.name +
                        "' on its way to other hosts"));
    lock.lock();
    const auto over = [&op] { return op.use == LeaderOp::Use::kOver; };
    if (changed_.wait_for(lock, options_.let_go_limit, over)) return;
    lock.unlock();
    options_.end_process("rank " + std::to_string(options_.map.rank) +
                         " cannot have the memory of '" + op.ready.name +
                         "' back: the work with other hosts was aborted and still holds it; going "
                         "on could change what is in it");
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

// ---- negotiating

void HostLeaderService::Negotiate() {
  while (!over_) {
    if (Status talked = NegotiateOnce(); !talked.ok()) {
      Die(talked);
      over_ = true;
    }
  }
  GiveUpTickets();
}

Status HostLeaderService::NegotiateOnce() {
  if (!TakeOrders()) return Status::Ok();
  if (Status heard = ReceiveLocal(); !heard.ok() || over_) return heard;
  // The loss of one rank is no end for the coordinator; for the others the loss of the coordinator
  // is.
  const uint32_t speaker = coordinates() ? kAnyLeader : kCoordinator;
  Result<InterHostMessage> message = link_.Receive(speaker, SteadyNow() + kLookAgain);
  Status status = message.status();
  if (message.ok()) {
    status = ReceiveMessage(*message);
  } else if (status.code() == Code::kInProgress) {
    status = Status::Ok();
  } else if (!coordinates()) {
    status = LoseCoordinator(status);
  }
  if (status.ok()) status = ReceiveLocal();
  return status.ok() ? LookAround() : status;
}

// Sends what other threads want sent. False when this thread is to end.
bool HostLeaderService::TakeOrders() {
  std::deque<OpPointer> posted;
  std::deque<Coordination> outbox;
  bool leaving = false;
  {
    MutexLock lock(mutex_);
    posted.swap(posted_);
    outbox.swap(outbox_);
    leaving = leaving_;
  }
  for (OpPointer& op : posted) tickets_[op->ready.ticket] = std::move(op);
  for (Coordination& msg : outbox) {
    if (Status said = SendToCoordinator(std::move(msg)); !said.ok()) {
      Die(said);
      over_ = true;
      return false;
    }
  }
  if (leaving) SendGoodbye();
  return !over_;
}

// Others may count on batches that were given out before they learn that this rank leaves, so the
// coordinator has the last word.
void HostLeaderService::SendGoodbye() {
  const TimePoint now = SteadyNow();
  if (!said_goodbye_) {
    said_goodbye_ = true;
    goodbye_deadline_ = now + options_.goodbye;
    // A neighbour may have gone before, and be the reason why this rank leaves.
    Status said = ReportLeavers();
    if (said.ok()) said = ReceiveLocal();
    if (coordinates()) {
      Coordinator::Answers answers;
      coordinator_->Close("rank 0, which arranges the work of all hosts, left the world", &answers);
      std::erase_if(answers, [&](const auto& answer) { return answer.to == options_.map.rank; });
      if (said.ok()) said = SendAnswers(std::move(answers));
      over_ = true;
    } else {
      if (said.ok()) said = SendToCoordinator(LeaveMessage{options_.map.rank});
      if (!said.ok()) over_ = true;
    }
  }
  if (now >= goodbye_deadline_) over_ = true;
}

Status HostLeaderService::SendToCoordinator(Coordination msg) {
  Status said = link_.Send(kCoordinator, std::move(msg));
  return said.ok() || coordinates() ? said : LoseCoordinator(said);
}

// It may have sent an abort notice before it went. A rank that leaves as well misses nothing.
Status HostLeaderService::LoseCoordinator(const Status& why) {
  const TimePoint deadline = SteadyNow() + options_.cause_grace;
  while (!over_) {
    Result<InterHostMessage> message = link_.Receive(kCoordinator, deadline);
    if (!message.ok() && message.status().code() == Code::kInProgress && SteadyNow() < deadline) {
      continue;  // woken
    }
    if (!message.ok()) break;
    if (Status heard = ReceiveMessage(*message); !heard.ok()) return heard;
  }
  over_ = over_ || said_goodbye_;
  if (over_) return Status::Ok();
  Result<InterHostMessage> anything = link_.Receive(kAnyLeader, TimePoint{});
  const bool aborted = !anything.ok() && anything.status().code() == Code::kAborted;
  if (aborted) return anything.status();  // not the coordinator alone
  return Aborted(
      "rank 0, which arranges the work of all hosts, left the world or is out of reach: " +
      why.message());
}

Status HostLeaderService::SendAnswers(Coordinator::Answers answers) {
  for (Coordinator::Answer& answer : answers) {
    if (Status said = link_.Send(answer.to, std::move(answer.msg)); !said.ok()) return said;
  }
  return Status::Ok();
}

Status HostLeaderService::ReceiveMessage(const InterHostMessage& message) {
  Result<std::optional<CoordinationLink::Received>> received = link_.Assemble(message);
  if (!received.ok()) return received.status();
  if (!received->has_value()) return Status::Ok();
  return Receive((*received)->first, std::move((*received)->second));
}

Status HostLeaderService::ReceiveLocal() {
  while (std::optional<CoordinationLink::Received> received = link_.TakeLocal()) {
    if (Status heard = Receive(received->first, std::move(received->second)); !heard.ok()) {
      return heard;
    }
  }
  return Status::Ok();
}

Status HostLeaderService::Receive(uint32_t from, Coordination msg) {
  const bool order =
      std::holds_alternative<RunMessage>(msg) || std::holds_alternative<EndMessage>(msg) ||
      std::holds_alternative<WaitMessage>(msg) || std::holds_alternative<AbortNotice>(msg);
  if (!order) {
    if (coordinator_ == nullptr) return Internal("this rank is no coordinator");
    Coordinator::Answers answers;
    Status heard = coordinator_->Receive(from, std::move(msg), SteadyNow(), &answers);
    return heard.ok() ? SendAnswers(std::move(answers)) : heard;
  }
  if (from != kCoordinator) {
    return Internal("rank " + std::to_string(from) +
                    " sent a message that only the coordinator, rank 0, may send");
  }
  if (auto* run = std::get_if<RunMessage>(&msg)) return OnRun(std::move(*run));
  if (auto* end = std::get_if<EndMessage>(&msg)) OnEnd(*end);
  if (auto* wait = std::get_if<WaitMessage>(&msg)) OnWait(*wait);
  if (auto* abort_notice = std::get_if<AbortNotice>(&msg)) OnAbortNotice(*abort_notice);
  return Status::Ok();
}

Status HostLeaderService::OnRun(RunMessage msg) {
  Batch batch;
  std::vector<uint32_t> others = msg.leaders;
  std::erase(others, options_.map.rank);
  for (const RunEntry& entry : msg.entries) {
    auto ticket = tickets_.find(entry.ticket);
    if (ticket == tickets_.end()) return Internal("the coordinator knows a ticket that never was");
    for (const auto& part : ticket->second->parts)
      part->result_status->awaited.ToInterHostComm(others);
    batch.ops.push_back(std::move(ticket->second));
    tickets_.erase(ticket);
  }
  batch.msg = std::move(msg);
  {
    MutexLock lock(mutex_);
    batches_.push_back(std::move(batch));
  }
  changed_.notify_all();
  return Status::Ok();
}

void HostLeaderService::OnEnd(const EndMessage& msg) {
  auto ticket = tickets_.find(msg.ticket);
  if (ticket == tickets_.end()) return;
  OpPointer op = std::move(ticket->second);
  tickets_.erase(ticket);
  if (!msg.status.ok()) return publisher_.PublishFailure(*op, msg.status);
  for (const auto& part : op->parts) part->result_status->last_joined = msg.last_joined;
  publisher_.PublishResults({&op, 1});
}

void HostLeaderService::OnWait(const WaitMessage& msg) {
  auto ticket = tickets_.find(msg.ticket);
  if (ticket == tickets_.end()) return;
  for (const auto& part : ticket->second->parts) part->result_status->awaited.ToCome(msg.ranks);
}

void HostLeaderService::OnAbortNotice(const AbortNotice& msg) {
  over_ = true;
  if (msg.why.empty()) return;
  MutexLock lock(mutex_);
  if (closed_.ok()) closed_ = Aborted(msg.why);
}

Status HostLeaderService::LookAround() {
  const TimePoint now = SteadyNow();
  if (now < look_again_) return Status::Ok();
  look_again_ = now + kLookAgain;
  if (coordinator_ != nullptr) {
    Coordinator::Answers answers;
    for (const std::string& sentence : coordinator_->Stalls(now, &answers)) LogWarning(sentence);
    if (Status said = SendAnswers(std::move(answers)); !said.ok()) return said;
    if (Status heard = ReceiveLocal(); !heard.ok()) return heard;
  }
  if (said_goodbye_) return Status::Ok();
  Status told = ReportLeavers();
  return told.ok() ? ReceiveLocal() : told;
}

Status HostLeaderService::ReportLeavers() {
  if (!options_.has_left) return Status::Ok();
  std::vector<uint32_t> gone;
  std::erase_if(neighbours_, [&](uint32_t rank) {
    if (options_.has_left(rank)) gone.push_back(rank);
    return !gone.empty() && gone.back() == rank;
  });
  for (uint32_t rank : gone) {
    if (Status said = SendToCoordinator(LeaveMessage{rank}); !said.ok()) return said;
  }
  return Status::Ok();
}

// The end of the negotiation thread: no decision about these comes any more.
void HostLeaderService::GiveUpTickets() {
  Status why;
  std::deque<OpPointer> posted;
  {
    MutexLock lock(mutex_);
    if (closed_.ok()) closed_ = Aborted("the world was shut down");
    why = closed_;
    posted.swap(posted_);
  }
  for (const OpPointer& op : posted) publisher_.PublishFailure(*op, why);
  for (const auto& [ticket, op] : tickets_) publisher_.PublishFailure(*op, why);
  tickets_.clear();
}

// ---- working

void HostLeaderService::Work() {
  for (;;) {
    Batch batch;
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

void HostLeaderService::Note(const Batch& batch, LeaderOp::Use use) {
  {
    MutexLock lock(mutex_);
    for (const OpPointer& op : batch.ops) op->use = use;
  }
  changed_.notify_all();
}

void HostLeaderService::Carry(const Batch& batch) {
  BatchExecutor executor({comm_, heap_, options_.idle_limit, [this] { return GivenUp(); }},
                         batch.msg, options_.map.rank);
  Note(batch, LeaderOp::Use::kInFlight);
  Status carried = executor.Run(batch.ops);
  Note(batch, LeaderOp::Use::kOver);
  if (!carried.ok()) {
    Die(carried);
    const Status why = closed();
    for (const OpPointer& op : batch.ops) publisher_.PublishFailure(*op, why);
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
