#include "runtime/core/engine.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/align.h"
#include "runtime/base/log.h"

namespace hvd {
namespace {

constexpr int64_t kSleepNs = 100'000'000;
// A pause can take longer than a peer that is about to answer, so the first looks come without.
constexpr uint32_t kEagerSpins = 50;
// How long a rank that shuts down goes on with what its peers already work on.
constexpr Duration kLastWork = std::chrono::milliseconds(200);

inline void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Engine::Engine(Peers& peers, Backend& backend, EngineOptions options)
    : peers_(peers),
      backend_(backend),
      options_(options),
      rank_(peers.rank()),
      size_(peers.size()),
      names_(size_),
      details_(size_) {}

Engine::~Engine() { Close("the world was shut down"); }

// ---- submitting

Result<Engine::Handle> Engine::Submit(const RequestSpec& spec) {
  size_t count = 0;
  if (Status checked = CheckRequest(spec, size_, &count); !checked.ok()) return checked;
  std::lock_guard lock(mutex_);
  Result<Operation*> op = SubmitLocked(spec, count);
  if (!op.ok()) return op.status();
  return (*op)->handle();
}

Status Engine::Run(const RequestSpec& spec) {
  size_t count = 0;
  if (Status checked = CheckRequest(spec, size_, &count); !checked.ok()) return checked;
  std::unique_lock lock(mutex_);
  Result<Operation*> op = SubmitLocked(spec, count);
  if (!op.ok()) return op.status();
  return WaitLocked((*op)->handle(), Duration(-1), lock);
}

Result<Operation*> Engine::SubmitLocked(const RequestSpec& spec, size_t count) {
  if (closed_.ok() && peers_.broken()) FailAll(Aborted(peers_.broken_text()));
  if (!closed_.ok()) return closed_;
  TensorName* name = names_.FindOrAdd(spec.name);
  if (name->operation != nullptr) {
    return Status(Code::kDuplicateName, "tensor '" + name->text +
                                            "' is already in flight on rank " +
                                            std::to_string(rank_) +
                                            "; wait for it, or give each tensor a name of its own");
  }
  Operation* op = operations_.Add();
  op->name = name;
  name->operation = op;
  peers_.NoteSubmitted(static_cast<uint32_t>(spec.collective), name->text);
  if (Status prepared = PrepareOp(op, spec, count); !prepared.ok()) {
    name->operation = nullptr;
    operations_.Release(op);
    names_.ForgetIfUnused(name);
    return prepared;
  }
  if (!unsent_.empty() || !Announce(op)) {
    unsent_.push_back(op);
    peers_.Nudge();
  }
  if (Ready(*name)) Start(name);
  return op;
}

Status Engine::PrepareOp(Operation* op, const RequestSpec& spec, size_t count) {
  op->call = {spec.collective, spec.op,     spec.dtype,    spec.root,     count,
              spec.input,      spec.output, spec.prescale, spec.postscale};
  Result<Offer> offer = backend_.Prepare(op->call, &op->state);
  if (!offer.ok()) return offer.status();
  op->offer = *offer;
  TensorName& name = *op->name;
  if (!name.own_detail_known || !Describes(name.own_detail, spec)) {
    name.own_detail = DetailOf(spec);
    name.own_detail_known = false;
    name.agreed = false;
  }
  return Status::Ok();
}

// Writes the request into the stream to the peers; false when there is no room yet.
bool Engine::Announce(Operation* op) {
  TensorName& name = *op->name;
  names_.NumberOwn(&name);
  if (size_ == 1) return op->sent = name.own_detail_known = true;
  std::string detail;
  if (!name.own_detail_known) detail = EncodeDetail(name.own_detail, name.text);
  const size_t detail_bytes = RoundUp(detail.size(), 8);
  RequestHead head{};
  head.name_id = name.own_number;
  head.detail_bytes = static_cast<uint32_t>(detail.size());
  std::copy(op->offer.words.begin(), op->offer.words.end(), head.words);
  std::span<const std::byte> payload = op->offer.payload;
  if (!payload.empty() && payload.size() <= sizeof head.words) {
    // An offer with a payload says nothing else.
    std::memcpy(head.words, payload.data(), payload.size());
    head.tiny_bytes = static_cast<uint32_t>(payload.size());
    payload = {};
  }
  head.payload_bytes = static_cast<uint32_t>(payload.size());
  std::span<std::byte> record = peers_.Reserve(sizeof head + detail_bytes + payload.size());
  if (record.empty()) return false;
  std::memcpy(record.data(), &head, sizeof head);
  std::memcpy(record.data() + sizeof head, detail.data(), detail.size());
  if (!payload.empty()) {
    std::memcpy(record.data() + sizeof head + detail_bytes, payload.data(), payload.size());
  }
  peers_.Commit();
  name.own_detail_known = true;
  op->sent = true;
  return true;
}

void Engine::AnnounceUnsent() {
  while (!unsent_.empty() && Announce(unsent_.front())) {
    TensorName* name = unsent_.front()->name;
    unsent_.pop_front();
    if (Ready(*name)) Start(name);
  }
}

// ---- hearing

void Engine::Hear() {
  for (uint32_t peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    for (;;) {
      std::span<const std::byte> record = peers_.Peek(peer);
      if (record.empty() || !HearOne(peer, record)) break;
    }
  }
}

// Takes one announcement in; false when it has to wait because the round before it, of the same name, is not over here.
bool Engine::HearOne(uint32_t peer, std::span<const std::byte> record) {
  RequestHead head;
  if (record.size() < sizeof head) {
    FailAll(Internal("rank " + std::to_string(peer) + " sent a damaged request"));
    return false;
  }
  std::memcpy(&head, record.data(), sizeof head);
  std::string_view rest(reinterpret_cast<const char*>(record.data()) + sizeof head,
                        record.size() - sizeof head);
  const size_t detail_bytes = RoundUp(head.detail_bytes, 8);
  Status sound = Status::Ok();
  if (detail_bytes + size_t{head.payload_bytes} != rest.size() ||
      head.tiny_bytes > sizeof head.words) {
    sound = InvalidArgument("a damaged request");
  }
  if (sound.ok() && head.detail_bytes != 0) {
    Detail detail;
    std::string_view text;
    sound = DecodeDetail(rest.substr(0, head.detail_bytes), &detail, &text);
    const TensorName* known = sound.ok() ? names_.Find(text) : nullptr;
    if (known != nullptr && known->here[peer] != 0) return false;  // its round needs the old detail
    if (sound.ok()) sound = names_.DefineOfPeer(peer, head.name_id, text, std::move(detail));
  }
  TensorName* name = sound.ok() ? names_.OfPeer(peer, head.name_id) : nullptr;
  if (sound.ok() && name == nullptr) sound = InvalidArgument("a request with an unknown number");
  if (!sound.ok()) {
    FailAll(Internal("rank " + std::to_string(peer) + " sent " + sound.message()));
    return false;
  }
  if (name->here[peer] != 0) return false;
  name->here[peer] = 1;
  ++name->arrived;
  Offer& offer = name->offers[peer];
  std::copy(std::begin(head.words), std::end(head.words), offer.words.begin());
  offer.payload = {record.data() + sizeof head + detail_bytes, head.payload_bytes};
  if (head.tiny_bytes != 0)
    offer.payload = std::as_bytes(std::span(offer.words)).first(head.tiny_bytes);
  if (Ready(*name)) {
    Start(name);
  } else {
    KeepPayload(name, peer);
  }
  peers_.Consume(peer);
  return true;
}

void Engine::KeepPayload(TensorName* name, uint32_t peer) {
  Offer& offer = name->offers[peer];
  const bool tiny = offer.payload.data() == reinterpret_cast<const std::byte*>(offer.words.data());
  if (offer.payload.empty() || tiny) return;
  std::vector<std::byte>& inbox = name->inboxes[peer];
  inbox.assign(offer.payload.begin(), offer.payload.end());
  offer.payload = inbox;
}

// ---- executing

bool Engine::Ready(const TensorName& name) const {
  return name.operation != nullptr && name.operation->sent && !name.operation->started &&
         name.arrived == size_ - 1;
}

void Engine::Start(TensorName* name) {
  Operation* op = name->operation;
  op->started = true;
  name->offers[rank_] = op->offer;
  Status agreed = Agree(name);
  Result<bool> complete =
      agreed.ok() ? backend_.Start(op->call, op->state.get(), name->offers) : Result<bool>(agreed);
  std::fill(name->here.begin(), name->here.end(), uint8_t{0});
  name->arrived = 0;
  if (!complete.ok()) {
    // A disagreement is seen by all, so nobody works on our memory; after any other failure somebody may.
    Complete(op, complete.status(), agreed.ok());
  } else if (*complete) {
    Complete(op, Status::Ok(), false);
  } else {
    running_.push_back(op);
  }
}

Status Engine::Agree(TensorName* name) {
  if (name->agreed) return Status::Ok();
  for (uint32_t r = 0; r < size_; ++r) {
    details_[r] = r == rank_ ? &name->own_detail : &name->details[r];
  }
  Status same = CompareDetails(name->text, details_);
  name->agreed = same.ok();
  return same;
}

void Engine::Advance(Operation* op) {
  Result<bool> complete = backend_.Advance(op->call, op->state.get());
  if (complete.ok() && !*complete) return;
  std::erase(running_, op);
  Complete(op, complete.status(), !complete.ok());
  peers_.WakeAll();
}

void Engine::AdvanceOthers(const Operation* except) {
  for (size_t i = 0; i < running_.size();) {
    Operation* op = running_[i];
    if (op != except) Advance(op);
    if (i < running_.size() && running_[i] == op) ++i;
  }
}

void Engine::Complete(Operation* op, Status status, bool peers_may_work) {
  if (!status.ok()) backend_.Abandon(std::move(op->state), peers_may_work);
  op->state.reset();
  op->status = std::move(status);
  op->done = true;
  TensorName* name = std::exchange(op->name, nullptr);
  name->operation = nullptr;
  names_.ForgetIfUnused(name);
  if (sleepers_ > 0) peers_.WakeSelf();
}

// A peer that has heard what we announced may be at work on our memory, now or later.
void Engine::FailAll(const Status& status) {
  if (closed_.ok()) closed_ = status;
  unsent_.clear();
  running_.clear();
  operations_.ForEachPending([&](Operation& op) { Complete(&op, status, op.sent && size_ > 1); });
}

// Fails operations that wait for a rank which has left and sent everything it had to say.
void Engine::FailWhatNeedsLeavers() {
  for (uint32_t peer = 0; peer < size_; ++peer) {
    if (peer == rank_ || !peers_.HasLeft(peer)) continue;
    Hear();
    if (!peers_.Peek(peer).empty()) continue;
    operations_.ForEachPending([&](Operation& op) {
      if (!WaitsInVainFor(peer, op)) return;
      std::erase(unsent_, &op);
      std::erase(running_, &op);
      std::string why = "rank " + std::to_string(peer) +
                        " left the world before it took part in '" + op.name->text +
                        "': it called shutdown or came to its end";
      Complete(&op, Aborted(std::move(why)), op.started);
    });
  }
}

bool Engine::WaitsInVainFor(uint32_t peer, const Operation& op) const {
  if (!op.started) return op.name->here[peer] == 0;
  return backend_.Needs(op.call, op.state.get(), peer);
}

// ---- waiting

void Engine::Progress() {
  if (peers_.broken()) {
    if (closed_.ok()) FailAll(Aborted(peers_.broken_text()));
    return;
  }
  Hear();
  if (!unsent_.empty()) AnnounceUnsent();
}

Result<bool> Engine::Poll(Handle handle) {
  std::lock_guard lock(mutex_);
  Operation* op = operations_.Find(handle);
  if (op == nullptr) return InvalidArgument("unknown handle " + std::to_string(handle));
  if (!op->done) Progress();
  if (!op->done && op->started) Advance(op);
  if (!op->done) FailWhatNeedsLeavers();
  return op->done;
}

Status Engine::Wait(Handle handle, Duration timeout) {
  std::unique_lock lock(mutex_);
  return WaitLocked(handle, timeout, lock);
}

Status Engine::WaitLocked(Handle handle, Duration timeout, std::unique_lock<std::mutex>& lock) {
  Status waited = WaitDone(handle, timeout, lock);
  if (!waited.ok()) return waited;
  Operation* op = operations_.Find(handle);
  Status status = std::move(op->status);
  operations_.Release(op);
  return status;
}

// Ok once the operation is done, with whatever result.
Status Engine::WaitDone(Handle handle, Duration timeout, std::unique_lock<std::mutex>& lock) {
  TimePoint deadline = TimePoint::max();
  bool deadline_set = timeout.count() < 0;
  for (;;) {
    Operation* op = operations_.Find(handle);
    if (op == nullptr) return InvalidArgument("unknown handle " + std::to_string(handle));
    if (op->done || SpinFor(op)) return Status::Ok();
    AdvanceOthers(op);
    if (op->done) return Status::Ok();
    TimePoint now = SteadyNow();
    if (!deadline_set) {
      deadline = now + timeout;
      deadline_set = true;
    }
    if (now >= deadline) return {Code::kInProgress, "still waiting"};
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
  TimePoint now = SteadyNow();
  WarnIfStalled(op, now);
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

void Engine::WarnIfStalled(Operation* op, TimePoint now) {
  if (op->waiting_since == TimePoint{}) op->waiting_since = op->warned_at = now;
  if (options_.stall_warning.count() <= 0 || now - op->warned_at < options_.stall_warning) return;
  op->warned_at = now;
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - op->waiting_since).count();
  std::string missing = MissingRanks(*op->name);
  std::string what =
      missing.empty() ? "for its data to be moved" : "for rank " + missing + " to submit it";
  LogWarning("rank " + std::to_string(rank_) + " has waited " + std::to_string(seconds) +
             " s in '" + op->name->text + "' " + what);
}

std::string Engine::MissingRanks(const TensorName& name) const {
  std::string ranks;
  if (name.operation == nullptr || name.operation->started) return ranks;
  for (uint32_t r = 0; r < size_; ++r) {
    if (r == rank_ || name.here[r] != 0) continue;
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(r);
  }
  return ranks;
}

bool Engine::Tend() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  Progress();
  return !unsent_.empty();
}

void Engine::Close(std::string reason) {
  std::lock_guard lock(mutex_);
  // Peers are at work on our memory: let them finish before it goes away.
  const TimePoint deadline = SteadyNow() + kLastWork;
  while (!running_.empty() && closed_.ok() && SteadyNow() < deadline) {
    Progress();
    AdvanceOthers(nullptr);
    if (!running_.empty()) ::sched_yield();
  }
  FailAll(Aborted(std::move(reason)));
}

}  // namespace hvd
