#include "runtime/backends/hosts/host_leader_service.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/backends/hosts/batch_executor.h"
#include "runtime/base/log.h"

namespace hvd {
namespace {

constexpr uint32_t kCoordinator = 0;
constexpr uint64_t kNegotiationTag = uint64_t{1} << 63;
constexpr Duration kLookAgain = std::chrono::milliseconds(100);
constexpr Duration kCauseLook = std::chrono::milliseconds(20);
// The first byte of every piece of a message.
constexpr char kMorePieces = 1, kLastPiece = 0;

}  // namespace

void EndProcess(const std::string& why) {
  LogError(why + "; the process ends itself");
  std::abort();
}

HostLeaderService::HostLeaderService(InterHostComm& comm, SharedHeap& heap,
                                     HostLeaderOptions options)
    : comm_(comm), heap_(heap), options_(std::move(options)) {
  const HostMap& map = options_.map;
  if (coordinates()) {
    coordinator_ = std::make_unique<Coordinator>(map, options_.compare, options_.coordinator);
  }
  for (uint32_t r = 0; r < map.host_of.size(); ++r) {
    if (r != map.rank && map.host_of[r] == map.here()) neighbours_.push_back(r);
  }
  // The first rank of each host sees its neighbours leave, whether it leads anything or not.
  const bool first_here = neighbours_.empty() || neighbours_[0] > map.rank;
  std::lock_guard lock(mutex_);
  if (first_here) StartThreads();
}

void HostLeaderService::Leave() {
  AbortIfBroken();
  {
    std::lock_guard lock(mutex_);
    if (leaving_) return;
    leaving_ = true;
    changed_.notify_all();
    if (!negotiation_.joinable() && closed_.ok()) closed_ = Aborted("the world was shut down");
  }
  comm_.Wake();
  if (negotiation_.joinable()) negotiation_.join();
  {
    std::lock_guard lock(mutex_);
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
    std::lock_guard lock(mutex_);
    closed = closed_;
    ticket = op->ready.ticket = next_ticket_++;
    if (closed.ok()) {
      StartThreads();
      const bool joins = op->ready.collective == Collective::kJoin && op->ready.failure.ok();
      outbox_.push_back(joins ? Coordination(JoinMessage{ticket, op->last_here})
                              : Coordination(op->ready));
      posted_.push_back(std::move(op));
    }
  }
  if (closed.ok()) {
    comm_.Wake();
  } else {
    PublishFailure(*op, closed);
  }
  return ticket;
}

void HostLeaderService::Withdraw(uint64_t ticket, std::string why) {
  if (AbortIfBroken()) return;
  {
    std::lock_guard lock(mutex_);
    if (!closed_.ok() || !negotiation_.joinable()) return;
    outbox_.push_back(WithdrawMessage{ticket, std::move(why)});
  }
  comm_.Wake();
}

void HostLeaderService::LetGo(LeaderOp& op, LeaderTensor& part) {
  AbortIfBroken();
  std::unique_lock lock(mutex_);
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
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    if (closed_.ok()) closed_ = why;
    if (failure_.ok()) failure_ = why;
  }
  comm_.Abort(why);
}

// The launcher's word may reach this host first. Whatever we give up then, others hear its cause
// from us.
bool HostLeaderService::AbortIfBroken() {
  const std::optional<std::string> why = options_.broken();
  if (why) Abort(Aborted(*why));
  return why.has_value();
}

Status HostLeaderService::closed() {
  std::lock_guard lock(mutex_);
  return closed_;
}

Status HostLeaderService::failure() {
  std::lock_guard lock(mutex_);
  return failure_;
}

void HostLeaderService::NoteFailure(const Status& why) {
  std::lock_guard lock(mutex_);
  if (failure_.ok()) failure_ = why;
}

// ---- talking

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
  Result<InterHostMessage> message =
      comm_.Receive(speaker, kNegotiationTag, SteadyNow() + kLookAgain);
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

// Says what other threads want said. False when this thread is to end.
bool HostLeaderService::TakeOrders() {
  std::deque<OpPointer> posted;
  std::deque<Coordination> outbox;
  bool leaving = false;
  {
    std::lock_guard lock(mutex_);
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

// Others may count on batches that were given out before they hear of our leaving, so the
// coordinator has the last word.
void HostLeaderService::SendGoodbye() {
  const TimePoint now = SteadyNow();
  if (!said_goodbye_) {
    said_goodbye_ = true;
    goodbye_deadline_ = now + options_.goodbye;
    // A neighbour may have gone before us, and be why we go.
    Status said = ReportLeavers();
    if (said.ok()) said = ReceiveLocal();
    if (coordinates()) {
      Coordinator::Answers answers;
      coordinator_->Close("rank 0, which arranges the work of all hosts, left the world", &answers);
      for (Coordinator::Answer& answer : answers) {
        if (answer.to != options_.map.rank && said.ok()) said = Send(answer.to, answer.msg);
      }
      over_ = true;
    } else {
      if (said.ok()) said = SendToCoordinator(LeaveMessage{options_.map.rank});
      if (!said.ok()) over_ = true;
    }
  }
  if (now >= goodbye_deadline_) over_ = true;
}

Status HostLeaderService::SendToCoordinator(Coordination msg) {
  Status said = Send(kCoordinator, std::move(msg));
  return said.ok() || coordinates() ? said : LoseCoordinator(said);
}

// It may have said farewell before it went. Who leaves as well has nothing to miss.
Status HostLeaderService::LoseCoordinator(const Status& why) {
  const TimePoint deadline = SteadyNow() + options_.cause_grace;
  while (!over_) {
    Result<InterHostMessage> message = comm_.Receive(kCoordinator, kNegotiationTag, deadline);
    if (!message.ok() && message.status().code() == Code::kInProgress && SteadyNow() < deadline) {
      continue;  // woken
    }
    if (!message.ok()) break;
    if (Status heard = ReceiveMessage(*message); !heard.ok()) return heard;
  }
  over_ = over_ || said_goodbye_;
  if (over_) return Status::Ok();
  Result<InterHostMessage> anything = comm_.Receive(kAnyLeader, kNegotiationTag, TimePoint{});
  const bool aborted = !anything.ok() && anything.status().code() == Code::kAborted;
  if (aborted) return anything.status();  // not the coordinator alone
  return Aborted(
      "rank 0, which arranges the work of all hosts, left the world or is out of reach: " +
      why.message());
}

Status HostLeaderService::Send(uint32_t to, Coordination msg) {
  if (to != options_.map.rank) return Transmit(to, msg);
  here_.emplace_back(to, std::move(msg));
  return Status::Ok();
}

Status HostLeaderService::Transmit(uint32_t to, const Coordination& msg) {
  const std::string bytes = EncodeCoordination(msg);
  constexpr size_t kRoom = kMaxInterHostMessage - 1;
  for (size_t at = 0;; at += kRoom) {
    const bool last = bytes.size() - at <= kRoom;
    const std::string piece =
        std::string(1, last ? kLastPiece : kMorePieces) + bytes.substr(at, kRoom);
    Status sent = comm_.Send(to, kNegotiationTag, std::as_bytes(std::span(piece)),
                             After(SteadyNow(), options_.idle_limit));
    if (!sent.ok() || last) return sent;
  }
}

Status HostLeaderService::ReceiveMessage(const InterHostMessage& message) {
  if (message.bytes.empty()) return Internal("an empty message between leaders");
  std::string& whole = partial_[message.from];
  whole.append(message.bytes, 1);
  if (message.bytes[0] == kMorePieces) return Status::Ok();
  Result<Coordination> msg = DecodeCoordination(whole);
  partial_.erase(message.from);
  if (!msg.ok()) {
    return Internal("rank " + std::to_string(message.from) + " sent " + msg.status().message());
  }
  return Receive(message.from, std::move(*msg));
}

Status HostLeaderService::ReceiveLocal() {
  while (!here_.empty()) {
    auto [from, msg] = std::move(here_.front());
    here_.pop_front();
    if (Status heard = Receive(from, std::move(msg)); !heard.ok()) return heard;
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
    for (Coordinator::Answer& answer : answers) {
      if (heard.ok()) heard = Send(answer.to, std::move(answer.msg));
    }
    return heard;
  }
  if (from != kCoordinator) {
    return Internal("rank " + std::to_string(from) + " spoke like a coordinator");
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
    std::lock_guard lock(mutex_);
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
  if (!msg.status.ok()) return PublishFailure(*op, msg.status);
  for (const auto& part : op->parts) {
    part->result_status->last_joined = msg.last_joined;
    PublishResult(*part);
  }
  options_.wake_host();
}

void HostLeaderService::OnWait(const WaitMessage& msg) {
  auto ticket = tickets_.find(msg.ticket);
  if (ticket == tickets_.end()) return;
  for (const auto& part : ticket->second->parts) part->result_status->awaited.ToCome(msg.ranks);
}

void HostLeaderService::OnAbortNotice(const AbortNotice& msg) {
  over_ = true;
  if (msg.why.empty()) return;
  std::lock_guard lock(mutex_);
  if (closed_.ok()) closed_ = Aborted(msg.why);
}

Status HostLeaderService::LookAround() {
  const TimePoint now = SteadyNow();
  if (now < look_again_) return Status::Ok();
  look_again_ = now + kLookAgain;
  if (coordinator_ != nullptr) {
    Coordinator::Answers answers;
    for (const std::string& sentence : coordinator_->Stalls(now, &answers)) LogWarning(sentence);
    for (Coordinator::Answer& answer : answers) {
      if (Status said = Send(answer.to, std::move(answer.msg)); !said.ok()) return said;
    }
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

// The end of the talk thread: nobody will decide about these any more.
void HostLeaderService::GiveUpTickets() {
  Status why;
  std::deque<OpPointer> posted;
  {
    std::lock_guard lock(mutex_);
    if (closed_.ok()) closed_ = Aborted("the world was shut down");
    why = closed_;
    posted.swap(posted_);
  }
  for (const OpPointer& op : posted) PublishFailure(*op, why);
  for (const auto& [ticket, op] : tickets_) PublishFailure(*op, why);
  tickets_.clear();
}

// ---- working

void HostLeaderService::Work() {
  for (;;) {
    Batch batch;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !batches_.empty(); });
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
    std::lock_guard lock(mutex_);
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
    for (const OpPointer& op : batch.ops) PublishFailure(*op, why);
    return;
  }
  for (const OpPointer& op : batch.ops) {
    for (const auto& part : op->parts) PublishResult(*part);
  }
  options_.wake_host();
  if (batch.msg.leaders[0] != options_.map.rank) return;
  {
    std::lock_guard lock(mutex_);
    outbox_.push_back(DoneMessage{batch.msg.number});
  }
  comm_.Wake();
}

// ---- ends

// A connection that breaks is mostly the consequence of a death, which the launcher is about to
// tell. Who leaves needs no cause any more.
Status HostLeaderService::FirstCause(const Status& status) {
  const TimePoint deadline = SteadyNow() + options_.cause_grace;
  for (;;) {
    if (std::optional<std::string> why = options_.broken()) return Aborted(*why);
    std::unique_lock lock(mutex_);
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
    std::lock_guard lock(mutex_);
    if (closed_.ok()) closed_ = why;
    why = closed_;
  }
  NoteFailure(why);
  comm_.Abort(why);
}

void HostLeaderService::PublishResult(LeaderTensor& part) {
  ResultStatus& result_status = *part.result_status;
  if (part.memory != nullptr && result_status.result_bytes != 0) {
    result_status.result =
        heap_.Locate(part.memory, result_status.result_bytes).value_or(Location{});
  }
  result_status.Enter(Phase::kDone);
}

// True when nobody works on the part's sum any more.
bool HostLeaderService::StopSum(LeaderTensor& part, TimePoint deadline) {
  for (;;) {
    if (part.local_sum.Stop()) return true;
    if (options_.broken().has_value() || SteadyNow() >= deadline) return false;
    ::sched_yield();
  }
}

void HostLeaderService::PublishFailure(const LeaderOp& op, const Status& status) {
  const TimePoint deadline = After(SteadyNow(), options_.chunk_limit);
  for (const auto& part : op.parts) {
    ResultStatus& result_status = *part->result_status;
    const bool unused = StopSum(*part, deadline);
    result_status.code = static_cast<uint32_t>(status.code());
    result_status.broke = failure().ok() ? 0 : 1;
    const std::string& text = status.message();
    void* memory = heap_.Allocate(text.size() + 1, /*zeroed=*/false, nullptr, Until::kWorldEnds);
    if (memory != nullptr) {
      std::memcpy(memory, text.data(), text.size());
      result_status.text = heap_.Locate(memory, text.size() + 1).value_or(Location{});
      result_status.text_bytes = text.size();
      if (part->memory != nullptr && unused) heap_.Free(part->memory);
      part->memory = static_cast<std::byte*>(memory);
    }
    result_status.Enter(Phase::kFailed);
  }
  options_.wake_host();
}

}  // namespace hvd
