#include "runtime/backends/hosts/conductor.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/backends/hosts/crossing.h"
#include "runtime/base/log.h"

namespace hvd {
namespace {

constexpr uint32_t kCoordinator = 0;
constexpr uint64_t kTalkTag = uint64_t{1} << 63;
constexpr Duration kLookAgain = std::chrono::milliseconds(100);
constexpr Duration kCauseLook = std::chrono::milliseconds(20);
// The first byte of every piece of a message.
constexpr char kMorePieces = 1, kLastPiece = 0;

}  // namespace

void EndProcess(const std::string& why) {
  LogError(why + "; the process ends itself");
  std::abort();
}

Conductor::Conductor(Cross& cross, SharedHeap& heap, ConductorOptions options)
    : cross_(cross), heap_(heap), options_(std::move(options)) {
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

void Conductor::Leave() {
  AbortIfBroken();
  {
    std::lock_guard lock(mutex_);
    if (leaving_) return;
    leaving_ = true;
    changed_.notify_all();
    if (!talk_.joinable() && closed_.ok()) closed_ = Aborted("the world was shut down");
  }
  cross_.Wake();
  if (talk_.joinable()) talk_.join();
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (work_.joinable()) work_.join();
}

void Conductor::StartThreads() {
  if (talk_.joinable()) return;
  talk_ = std::thread([this] { Talk(); });
  work_ = std::thread([this] { Work(); });
}

uint64_t Conductor::Post(std::shared_ptr<LeaderOp> op) {
  Status closed;
  uint64_t ticket = 0;
  {
    std::lock_guard lock(mutex_);
    closed = closed_;
    ticket = op->ready.ticket = next_ticket_++;
    if (closed.ok()) {
      StartThreads();
      const bool joins = op->ready.collective == Collective::kJoin && op->ready.failure.ok();
      outbox_.push_back(joins ? Words(JoinWords{ticket, op->last_here}) : Words(op->ready));
      posted_.push_back(std::move(op));
    }
  }
  if (closed.ok()) {
    cross_.Wake();
  } else {
    PublishFailure(*op, closed);
  }
  return ticket;
}

void Conductor::Withdraw(uint64_t ticket, std::string why) {
  if (AbortIfBroken()) return;
  {
    std::lock_guard lock(mutex_);
    if (!closed_.ok() || !talk_.joinable()) return;
    outbox_.push_back(WithdrawWords{ticket, std::move(why)});
  }
  cross_.Wake();
}

void Conductor::LetGo(LeaderOp& op, LeaderPart& part) {
  AbortIfBroken();
  std::unique_lock lock(mutex_);
  if (op.use == LeaderOp::Use::kNotYet) {
    const size_t bytes = part.call.bytes();
    part.copy = std::make_unique_for_overwrite<std::byte[]>(bytes);
    if (bytes != 0) std::memcpy(part.copy.get(), part.input, bytes);
    part.input = part.output = part.copy.get();
  } else if (op.use == LeaderOp::Use::kUnderWay) {
    lock.unlock();
    cross_.Abort(Aborted("rank " + std::to_string(options_.map.rank) + " gave up '" +
                         op.ready.name + "' on its way to other hosts"));
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

void Conductor::Abort(const Status& why) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    if (closed_.ok()) closed_ = why;
    if (failure_.ok()) failure_ = why;
  }
  cross_.Abort(why);
}

// The launcher's word may reach this host first. Whatever we give up then, others hear its cause from us.
bool Conductor::AbortIfBroken() {
  const std::optional<std::string> why = options_.broken();
  if (why) Abort(Aborted(*why));
  return why.has_value();
}

Status Conductor::closed() {
  std::lock_guard lock(mutex_);
  return closed_;
}

Status Conductor::failure() {
  std::lock_guard lock(mutex_);
  return failure_;
}

void Conductor::NoteFailure(const Status& why) {
  std::lock_guard lock(mutex_);
  if (failure_.ok()) failure_ = why;
}

// ---- talking

void Conductor::Talk() {
  while (!over_) {
    if (Status talked = TalkOnce(); !talked.ok()) {
      Die(talked);
      over_ = true;
    }
  }
  GiveUpTickets();
}

Status Conductor::TalkOnce() {
  if (!TakeOrders()) return Status::Ok();
  if (Status heard = HearHere(); !heard.ok() || over_) return heard;
  // The loss of one rank is no end for the coordinator; for the others the loss of the coordinator is.
  const uint32_t speaker = coordinates() ? kAnyLeader : kCoordinator;
  Result<CrossMessage> message = cross_.Receive(speaker, kTalkTag, SteadyNow() + kLookAgain);
  Status status = message.status();
  if (message.ok()) {
    status = HearMessage(*message);
  } else if (status.code() == Code::kInProgress) {
    status = Status::Ok();
  } else if (!coordinates()) {
    status = LoseCoordinator(status);
  }
  if (status.ok()) status = HearHere();
  return status.ok() ? LookAround() : status;
}

// Says what other threads want said. False when this thread is to end.
bool Conductor::TakeOrders() {
  std::deque<OpPointer> posted;
  std::deque<Words> outbox;
  bool leaving = false;
  {
    std::lock_guard lock(mutex_);
    posted.swap(posted_);
    outbox.swap(outbox_);
    leaving = leaving_;
  }
  for (OpPointer& op : posted) tickets_[op->ready.ticket] = std::move(op);
  for (Words& words : outbox) {
    if (Status said = SayToCoordinator(std::move(words)); !said.ok()) {
      Die(said);
      over_ = true;
      return false;
    }
  }
  if (leaving) SayGoodbye();
  return !over_;
}

// Others may count on batches that were given out before they hear of our leaving, so the coordinator has the last word.
void Conductor::SayGoodbye() {
  const TimePoint now = SteadyNow();
  if (!said_goodbye_) {
    said_goodbye_ = true;
    goodbye_deadline_ = now + options_.goodbye;
    // A neighbour may have gone before us, and be why we go.
    Status said = TellWhoLeft();
    if (said.ok()) said = HearHere();
    if (coordinates()) {
      Coordinator::Answers answers;
      coordinator_->Close("rank 0, which arranges the work of all hosts, left the world", &answers);
      for (Coordinator::Answer& answer : answers) {
        if (answer.to != options_.map.rank && said.ok()) said = Say(answer.to, answer.words);
      }
      over_ = true;
    } else {
      if (said.ok()) said = SayToCoordinator(LeaveWords{options_.map.rank});
      if (!said.ok()) over_ = true;
    }
  }
  if (now >= goodbye_deadline_) over_ = true;
}

Status Conductor::SayToCoordinator(Words words) {
  Status said = Say(kCoordinator, std::move(words));
  return said.ok() || coordinates() ? said : LoseCoordinator(said);
}

// It may have said farewell before it went. Who leaves as well has nothing to miss.
Status Conductor::LoseCoordinator(const Status& why) {
  const TimePoint deadline = SteadyNow() + options_.cause_grace;
  while (!over_) {
    Result<CrossMessage> message = cross_.Receive(kCoordinator, kTalkTag, deadline);
    if (!message.ok() && message.status().code() == Code::kInProgress && SteadyNow() < deadline) {
      continue;  // woken
    }
    if (!message.ok()) break;
    if (Status heard = HearMessage(*message); !heard.ok()) return heard;
  }
  over_ = over_ || said_goodbye_;
  if (over_) return Status::Ok();
  Result<CrossMessage> anything = cross_.Receive(kAnyLeader, kTalkTag, TimePoint{});
  const bool aborted = !anything.ok() && anything.status().code() == Code::kAborted;
  if (aborted) return anything.status();  // not the coordinator alone
  return Aborted(
      "rank 0, which arranges the work of all hosts, left the world or is out of reach: " +
      why.message());
}

Status Conductor::Say(uint32_t to, Words words) {
  if (to != options_.map.rank) return Transmit(to, words);
  here_.emplace_back(to, std::move(words));
  return Status::Ok();
}

Status Conductor::Transmit(uint32_t to, const Words& words) {
  const std::string bytes = EncodeWords(words);
  constexpr size_t kRoom = kMaxCrossMessage - 1;
  for (size_t at = 0;; at += kRoom) {
    const bool last = bytes.size() - at <= kRoom;
    const std::string piece =
        std::string(1, last ? kLastPiece : kMorePieces) + bytes.substr(at, kRoom);
    Status sent = cross_.Send(to, kTalkTag, std::as_bytes(std::span(piece)),
                              After(SteadyNow(), options_.idle_limit));
    if (!sent.ok() || last) return sent;
  }
}

Status Conductor::HearMessage(const CrossMessage& message) {
  if (message.bytes.empty()) return Internal("an empty message between leaders");
  std::string& whole = partial_[message.from];
  whole.append(message.bytes, 1);
  if (message.bytes[0] == kMorePieces) return Status::Ok();
  Result<Words> words = DecodeWords(whole);
  partial_.erase(message.from);
  if (!words.ok()) {
    return Internal("rank " + std::to_string(message.from) + " sent " + words.status().message());
  }
  return Hear(message.from, std::move(*words));
}

Status Conductor::HearHere() {
  while (!here_.empty()) {
    auto [from, words] = std::move(here_.front());
    here_.pop_front();
    if (Status heard = Hear(from, std::move(words)); !heard.ok()) return heard;
  }
  return Status::Ok();
}

Status Conductor::Hear(uint32_t from, Words words) {
  const bool order =
      std::holds_alternative<RunWords>(words) || std::holds_alternative<EndWords>(words) ||
      std::holds_alternative<WaitWords>(words) || std::holds_alternative<FarewellWords>(words);
  if (!order) {
    if (coordinator_ == nullptr) return Internal("this rank is no coordinator");
    Coordinator::Answers answers;
    Status heard = coordinator_->Hear(from, std::move(words), SteadyNow(), &answers);
    for (Coordinator::Answer& answer : answers) {
      if (heard.ok()) heard = Say(answer.to, std::move(answer.words));
    }
    return heard;
  }
  if (from != kCoordinator) {
    return Internal("rank " + std::to_string(from) + " spoke like a coordinator");
  }
  if (auto* run = std::get_if<RunWords>(&words)) return OnRun(std::move(*run));
  if (auto* end = std::get_if<EndWords>(&words)) OnEnd(*end);
  if (auto* wait = std::get_if<WaitWords>(&words)) OnWait(*wait);
  if (auto* farewell = std::get_if<FarewellWords>(&words)) OnFarewell(*farewell);
  return Status::Ok();
}

Status Conductor::OnRun(RunWords words) {
  Batch batch;
  std::vector<uint32_t> others = words.leaders;
  std::erase(others, options_.map.rank);
  for (const RunEntry& entry : words.entries) {
    auto ticket = tickets_.find(entry.ticket);
    if (ticket == tickets_.end()) return Internal("the coordinator knows a ticket that never was");
    for (const auto& part : ticket->second->parts) part->board->awaited.ToCross(others);
    batch.ops.push_back(std::move(ticket->second));
    tickets_.erase(ticket);
  }
  batch.words = std::move(words);
  {
    std::lock_guard lock(mutex_);
    batches_.push_back(std::move(batch));
  }
  changed_.notify_all();
  return Status::Ok();
}

void Conductor::OnEnd(const EndWords& words) {
  auto ticket = tickets_.find(words.ticket);
  if (ticket == tickets_.end()) return;
  OpPointer op = std::move(ticket->second);
  tickets_.erase(ticket);
  if (!words.status.ok()) return PublishFailure(*op, words.status);
  for (const auto& part : op->parts) {
    part->board->last_joined = words.last_joined;
    PublishResult(*part);
  }
  options_.wake_host();
}

void Conductor::OnWait(const WaitWords& words) {
  auto ticket = tickets_.find(words.ticket);
  if (ticket == tickets_.end()) return;
  for (const auto& part : ticket->second->parts) part->board->awaited.ToCome(words.ranks);
}

void Conductor::OnFarewell(const FarewellWords& words) {
  over_ = true;
  if (words.why.empty()) return;
  std::lock_guard lock(mutex_);
  if (closed_.ok()) closed_ = Aborted(words.why);
}

Status Conductor::LookAround() {
  const TimePoint now = SteadyNow();
  if (now < look_again_) return Status::Ok();
  look_again_ = now + kLookAgain;
  if (coordinator_ != nullptr) {
    Coordinator::Answers answers;
    for (const std::string& sentence : coordinator_->Stalls(now, &answers)) LogWarning(sentence);
    for (Coordinator::Answer& answer : answers) {
      if (Status said = Say(answer.to, std::move(answer.words)); !said.ok()) return said;
    }
    if (Status heard = HearHere(); !heard.ok()) return heard;
  }
  if (said_goodbye_) return Status::Ok();
  Status told = TellWhoLeft();
  return told.ok() ? HearHere() : told;
}

Status Conductor::TellWhoLeft() {
  if (!options_.has_left) return Status::Ok();
  std::vector<uint32_t> gone;
  std::erase_if(neighbours_, [&](uint32_t rank) {
    if (options_.has_left(rank)) gone.push_back(rank);
    return !gone.empty() && gone.back() == rank;
  });
  for (uint32_t rank : gone) {
    if (Status said = SayToCoordinator(LeaveWords{rank}); !said.ok()) return said;
  }
  return Status::Ok();
}

// The end of the talk thread: nobody will decide about these any more.
void Conductor::GiveUpTickets() {
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

void Conductor::Work() {
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

bool Conductor::GivenUp() { return options_.broken().has_value() || !failure().ok(); }

void Conductor::Note(const Batch& batch, LeaderOp::Use use) {
  {
    std::lock_guard lock(mutex_);
    for (const OpPointer& op : batch.ops) op->use = use;
  }
  changed_.notify_all();
}

void Conductor::Carry(const Batch& batch) {
  Crossing crossing({cross_, heap_, options_.idle_limit, [this] { return GivenUp(); }}, batch.words,
                    options_.map.rank);
  Note(batch, LeaderOp::Use::kUnderWay);
  Status carried = crossing.Run(batch.ops);
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
  if (batch.words.leaders[0] != options_.map.rank) return;
  {
    std::lock_guard lock(mutex_);
    outbox_.push_back(DoneWords{batch.words.number});
  }
  cross_.Wake();
}

// ---- ends

// A connection that breaks is mostly the consequence of a death, which the launcher is about to tell. Who leaves needs no
// cause any more.
Status Conductor::FirstCause(const Status& status) {
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

void Conductor::Die(const Status& status) {
  Status why = closed();
  if (why.ok()) {
    why = FirstCause(status);
    std::lock_guard lock(mutex_);
    if (closed_.ok()) closed_ = why;
    why = closed_;
  }
  NoteFailure(why);
  cross_.Abort(why);
}

void Conductor::PublishResult(LeaderPart& part) {
  Board& board = *part.board;
  if (part.memory != nullptr && board.result_bytes != 0) {
    board.result = heap_.Locate(part.memory, board.result_bytes).value_or(Location{});
  }
  board.Enter(Phase::kDone);
}

// True when nobody works on the part's sum any more.
bool Conductor::StopSum(LeaderPart& part, TimePoint deadline) {
  for (;;) {
    if (part.local_sum.Stop()) return true;
    if (options_.broken().has_value() || SteadyNow() >= deadline) return false;
    ::sched_yield();
  }
}

void Conductor::PublishFailure(const LeaderOp& op, const Status& status) {
  const TimePoint deadline = After(SteadyNow(), options_.chunk_limit);
  for (const auto& part : op.parts) {
    Board& board = *part->board;
    const bool unused = StopSum(*part, deadline);
    board.code = static_cast<uint32_t>(status.code());
    board.broke = failure().ok() ? 0 : 1;
    const std::string& text = status.message();
    void* memory = heap_.Allocate(text.size() + 1, /*zeroed=*/false);
    if (memory != nullptr) {
      std::memcpy(memory, text.data(), text.size());
      board.text = heap_.Locate(memory, text.size() + 1).value_or(Location{});
      board.text_bytes = text.size();
      if (part->memory != nullptr && unused) heap_.Free(part->memory);
      part->memory = static_cast<std::byte*>(memory);
    }
    board.Enter(Phase::kFailed);
  }
  options_.wake_host();
}

}  // namespace hvd
