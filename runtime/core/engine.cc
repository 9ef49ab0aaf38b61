// Submitting and waiting.
#include "runtime/core/engine.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/core/request_text.h"

namespace hvd {
namespace {

constexpr int64_t kSleepNs = 100'000'000;
// A pause can take longer than a peer that is about to answer, so the first looks come without.
constexpr uint32_t kEagerSpins = 50;
constexpr std::string_view kJoinName = "join";
constexpr std::string_view kSetsName = "process sets";

inline void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

const Clock& MachineClock() {
  static const SteadyClock clock;
  return clock;
}

Status UnknownHandle(Engine::Handle handle) {
  return InvalidArgument("unknown handle " + std::to_string(handle));
}

}  // namespace

Engine::Engine(Peers& peers, Backend& backend, SharedHeap& heap, Group world, EngineOptions options)
    : peers_(peers),
      backend_(backend),
      heap_(heap),
      options_(options),
      clock_(options.clock != nullptr ? *options.clock : MachineClock()),
      self_(peers.rank()),
      count_(peers.size()),
      sets_(std::move(world)),
      names_(count_),
      assemblies_(count_),
      joined_(count_, 0) {}

Engine::~Engine() {
  Close("the world was shut down");
  operations_.ForEach([this](Operation& op) { FreeOutputs(&op); });
}

// ---- submitting

Result<Engine::Handle> Engine::Submit(const RequestSpec& spec) {
  std::lock_guard lock(mutex_);
  Result<Operation*> op = SubmitLocked(spec);
  if (!op.ok()) return op.status();
  const Handle handle = (*op)->handle();
  if (!running_.empty()) MakeProgress();
  return handle;
}

Status Engine::Run(const RequestSpec& spec) {
  std::unique_lock lock(mutex_);
  Result<Operation*> op = SubmitLocked(spec);
  if (!op.ok()) return op.status();
  return WaitLocked((*op)->handle(), Duration(-1), nullptr, lock);
}

Result<Engine::Handle> Engine::SubmitAddProcessSet(std::span<const uint32_t> ranks) {
  std::vector<uint32_t> members(ranks.begin(), ranks.end());
  std::sort(members.begin(), members.end());
  RequestSpec spec;
  spec.collective = Collective::kAddProcessSet;
  spec.name = kSetsName;
  spec.members = members;
  return Submit(spec);
}

Result<Engine::Handle> Engine::SubmitRemoveProcessSet(int32_t id) {
  RequestSpec spec;
  spec.collective = Collective::kRemoveProcessSet;
  spec.name = kSetsName;
  spec.process_set = id;
  return Submit(spec);
}

Result<Operation*> Engine::SubmitLocked(const RequestSpec& spec) {
  if (closed_.ok() && peers_.broken()) FailAll(Aborted(peers_.broken_text()));
  if (!closed_.ok()) return closed_;
  Result<ProcessSet*> set = SetOf(spec);
  if (!set.ok()) return set.status();
  if (!spec.unnamed) return SubmitNamed(*set, spec);
  RequestSpec named = spec;
  const std::string name =
      std::string(NameOf(spec.collective)) + ".noname." + std::to_string((*set)->unnamed);
  named.name = name;
  Result<Operation*> op = SubmitNamed(*set, named);
  if (op.ok()) ++(*set)->unnamed;  // what is refused is refused on this rank only, perhaps
  return op;
}

Result<Operation*> Engine::SubmitNamed(ProcessSet* set, const RequestSpec& spec) {
  if (Status checked = CheckRequest(spec, set->group); !checked.ok()) return checked;
  if (joined_[self_] != 0) return CheckNotJoined();
  if (spec.collective != Collective::kJoin) return SubmitOn(set, spec);
  RequestSpec join = spec;
  join.name = kJoinName;  // one in flight, whatever the caller calls it
  return SubmitOn(set, join);
}

// The set whose members take part; an error where this rank cannot use it.
Result<ProcessSet*> Engine::SetOf(const RequestSpec& spec) const {
  ProcessSet* world = &sets_.world();
  if (spec.collective == Collective::kAddProcessSet) {
    if (Status fit = sets_.CheckNew(spec.members); !fit.ok()) return fit;
    return world;
  }
  ProcessSet* set = sets_.Find(spec.process_set);
  if (spec.collective == Collective::kRemoveProcessSet && set == world) {
    return InvalidArgument("process set 0 is the world and cannot be removed");
  }
  if (set == nullptr || set->removing) {
    return InvalidArgument(
        "process set " + std::to_string(spec.process_set) +
        (set == nullptr ? " is unknown on rank " : " is being removed on rank ") +
        std::to_string(WorldRank(self_)) + "; use one that hvd.add_process_set() gave");
  }
  if (spec.collective == Collective::kRemoveProcessSet) return world;
  if (spec.collective == Collective::kJoin && set != world) {
    return InvalidArgument("join is possible on the world only, not on process set " +
                           std::to_string(spec.process_set));
  }
  if (!set->member) {
    return InvalidArgument("rank " + std::to_string(WorldRank(self_)) +
                           " is no member of process set " + std::to_string(spec.process_set) +
                           ", whose ranks are " + RanksText(set->group.ranks));
  }
  return set;
}

Status Engine::AlreadyInFlight(const TensorName& name) const {
  const std::string on = " on rank " + std::to_string(WorldRank(self_));
  if (name.domain == NameTable::kSetsDomain) {
    return {Code::kDuplicateName, "a change of the process sets is already in flight" + on +
                                      "; they go one after the other"};
  }
  return {Code::kDuplicateName, "tensor " + Quoted(name.text) + " is already in flight" + on +
                                    "; wait for it, or give each tensor a name of its own"};
}

Result<Operation*> Engine::SubmitOn(ProcessSet* set, const RequestSpec& spec) {
  const int32_t domain = NameTable::DomainOf(spec.collective, spec.process_set);
  TensorName* name = names_.FindOrAdd(domain, set, spec.name);
  if (name->operation != nullptr) return AlreadyInFlight(*name);
  Operation* op = operations_.Add();
  op->collective = spec.collective;
  op->name = name;
  op->set = set;
  peers_.NoteSubmitted(static_cast<uint32_t>(spec.collective), name->text);
  if (Status prepared = PrepareOp(op, spec); !prepared.ok()) {
    operations_.Release(op);
    names_.ForgetIfUnused(name);
    return prepared;
  }
  name->operation = op;
  ++set->in_flight;
  Launch(op, spec);
  return op;
}

// From here on the operation can only complete.
void Engine::Launch(Operation* op, const RequestSpec& spec) {
  if (!gone_.empty() && Doomed(*op->name)) return FailDoomed(op);
  if (spec.collective == Collective::kRemoveProcessSet) {
    sets_.Find(spec.process_set)->removing = true;
  }
  if (!unsent_.empty() || !Announce(op)) {
    unsent_.push_back(op);
    peers_.Nudge();
  }
  if (spec.collective == Collective::kJoin) {
    NoteJoined(self_);
  } else if (Ready(*op->name)) {
    Start(op->name);
  }
}

Status Engine::PrepareOp(Operation* op, const RequestSpec& spec) {
  TensorName& name = *op->name;
  const uint32_t members = op->set->group.size();
  if (!name.own_detail_known || !Describes(name.own_detail, spec, members)) {
    name.own_detail = DetailOf(spec, members);
    name.own_detail_known = false;
    name.agreed = false;
  }
  const std::span<const TensorSpec> tensors = spec.tensors();
  op->parts.resize(std::max<size_t>(1, tensors.size()));
  for (size_t i = 0; i < op->parts.size(); ++i) {
    Status prepared = PreparePart(op, &op->parts[i], spec, tensors.empty() ? nullptr : &tensors[i]);
    if (prepared.ok()) continue;
    for (OperationPart& part : op->parts) {
      if (part.state != nullptr) backend_.Abandon(std::move(part.state), false);
    }
    return prepared;
  }
  return Status::Ok();
}

Status Engine::PreparePart(Operation* op, OperationPart* part, const RequestSpec& spec,
                           const TensorSpec* tensor) {
  part->offer = {};
  part->result.made_output = nullptr;
  part->result.received_splits.clear();
  part->done = false;
  CollectiveCall& call = part->call;
  call = {};
  call.collective = spec.collective;
  call.op = spec.op;
  call.group = &op->set->group;
  call.result = &part->result;
  if (spec.collective == Collective::kJoin) {
    part->offer.words[0] = static_cast<uint64_t>(clock_.Now().time_since_epoch().count());
  }
  if (IsControl(spec.collective)) return Status::Ok();
  if (tensor != nullptr) {
    part->dimensions = static_cast<uint32_t>(tensor->shape.size());
    std::copy(tensor->shape.begin(), tensor->shape.end(), part->shape.begin());
    call.dtype = tensor->dtype;
    call.count = ElementsOf(tensor->shape);
    call.input = tensor->input;
    call.output = tensor->output;
    call.prescale = spec.prescale;
    call.postscale = spec.postscale;
    call.rows = tensor->shape.empty() ? 0 : tensor->shape[0];
    call.row_count = tensor->shape.empty() ? 1 : ElementsOf(tensor->shape.subspan(1));
  }
  if (spec.collective == Collective::kBroadcast) {
    const std::vector<uint32_t>& ranks = op->set->group.ranks;
    call.root = static_cast<uint32_t>(std::lower_bound(ranks.begin(), ranks.end(), spec.root) -
                                      ranks.begin());
  }
  if (spec.collective == Collective::kAlltoall) {
    call.splits = op->name->own_detail.parts[0].splits.data();
  }
  // What every rank will find wrong goes no further than the announcement.
  const bool plain = spec.collective == Collective::kAllreduce && spec.device == DeviceKind::kHost;
  if (!plain && !CheckAgreed(op->name->text, op->name->own_detail).ok()) return Status::Ok();
  Result<Offer> offer = backend_.Prepare(call, &part->state);
  if (!offer.ok()) return offer.status();
  part->offer = *offer;
  return Status::Ok();
}

// ---- waiting

void Engine::Progress() {
  if (peers_.broken()) {
    if (closed_.ok()) FailAll(Aborted(peers_.broken_text()));
    return;
  }
  Hear();
  if (!unsent_.empty()) AnnounceUnsent();
  if (!farewell_.empty()) SendFarewell();
}

void Engine::MakeProgress() {
  Progress();
  AdvanceOthers(nullptr);
}

Result<bool> Engine::Poll(Handle handle) {
  std::lock_guard lock(mutex_);
  Operation* op = operations_.Find(handle);
  if (op == nullptr) return UnknownHandle(handle);
  if (!op->done) MakeProgress();
  if (!op->done) FailWhatNeedsLeavers();
  return op->done;
}

Status Engine::Wait(Handle handle, Duration timeout, OperationResult* result) {
  std::unique_lock lock(mutex_);
  return WaitLocked(handle, timeout, result, lock);
}

Status Engine::WaitLocked(Handle handle, Duration timeout, OperationResult* result,
                          std::unique_lock<std::mutex>& lock) {
  Status waited = WaitDone(handle, timeout, lock);
  // Whoever is here works for everything that runs: peers may wait for it.
  if (!running_.empty()) AdvanceOthers(nullptr);
  if (!waited.ok()) return waited;
  Operation* op = operations_.Find(handle);
  if (op == nullptr) return UnknownHandle(handle);
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

// Ok once the operation is done, with whatever result.
Status Engine::WaitDone(Handle handle, Duration timeout, std::unique_lock<std::mutex>& lock) {
  TimePoint deadline = TimePoint::max();
  bool deadline_set = timeout.count() < 0;
  for (;;) {
    Operation* op = operations_.Find(handle);
    if (op == nullptr) return UnknownHandle(handle);
    if (op->done || SpinFor(op)) return Status::Ok();
    AdvanceOthers(op);
    if (op->done) return Status::Ok();
    TimePoint now = clock_.Now();
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
      (missing.empty() ? "for its data to be moved" : "for rank " + missing + " to submit it");
  if (!too_long) return LogWarning(sentence);
  EndWorld(sentence + ", longer than HOROVOD_STALL_SHUTDOWN_TIME_SECONDS allows");
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

bool Engine::Tend() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  Progress();
  return !unsent_.empty() || !farewell_.empty();
}

void Engine::Close(std::string reason) {
  std::lock_guard lock(mutex_);
  // Peers are at work on our memory: let them finish before it goes away.
  const TimePoint deadline = clock_.Now() + options_.last_work;
  while (!running_.empty() && closed_.ok() && clock_.Now() < deadline) {
    MakeProgress();
    if (!running_.empty()) ::sched_yield();
  }
  FailAll(Aborted(std::move(reason)));
}

// ---- process sets, for queries

std::vector<int32_t> Engine::ProcessSetIds() {
  std::lock_guard lock(mutex_);
  return sets_.Ids();
}

std::optional<std::vector<uint32_t>> Engine::ProcessSetRanks(int32_t id) {
  std::lock_guard lock(mutex_);
  const ProcessSet* set = sets_.Find(id);
  if (set == nullptr) return std::nullopt;
  return set->group.ranks;
}

int32_t Engine::ProcessSetSize(int32_t id) {
  std::lock_guard lock(mutex_);
  const ProcessSet* set = sets_.Find(id);
  return set == nullptr ? -1 : static_cast<int32_t>(set->group.size());
}

int32_t Engine::ProcessSetRank(int32_t id) {
  std::lock_guard lock(mutex_);
  const ProcessSet* set = sets_.Find(id);
  return set == nullptr || !set->member ? -1 : static_cast<int32_t>(set->group.index);
}

}  // namespace hvd
