// Submitting and waiting.
#include "runtime/core/engine.h"

#include <algorithm>
#include <utility>

#include "runtime/core/request_text.h"

namespace hvd {
namespace {

const Clock& MachineClock() {
  static const SteadyClock clock;
  return clock;
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
      operations_(options.handles_given),
      assemblies_(count_),
      joined_(count_, 0) {}

Engine::~Engine() {
  Close("the world was shut down");
  operations_.ForEach([this](Operation& op) { FreeOutputs(&op); });
}

// ---- submitting

Result<Engine::Handle> Engine::Submit(const RequestSpec& spec) {
  std::lock_guard lock(mutex_);
  const uint64_t call = ++calls_;
  Result<Operation*> op = SubmitLocked(spec);
  RetireUpTo(call - 1);
  if (!op.ok()) return op.status();
  const Handle handle = (*op)->handle();
  if (!running_.empty()) MakeProgress();
  return handle;
}

uint32_t Engine::handles_given() {
  std::lock_guard lock(mutex_);
  return operations_.given();
}

Status Engine::Run(const RequestSpec& spec) {
  std::unique_lock lock(mutex_);
  const uint64_t call = ++calls_;
  Result<Operation*> op = SubmitLocked(spec);
  RetireUpTo(call - 1);
  if (!op.ok()) return op.status();
  return WaitLocked((*op)->handle(), Duration(-1), nullptr, call, lock);
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

Result<Operation*> Engine::SubmitLocked(const RequestSpec& spec) {
  if (closed_.ok() && peers_.broken()) FailAll(Aborted(peers_.broken_text()));
  if (!closed_.ok()) return closed_;
  Result<ProcessSet*> set = SetOf(spec);
  if (!set.ok()) return set.status();
  if (!options_.average_of_active || spec.collective != Collective::kAllreduce ||
      spec.op != ReduceOp::kAverage) {
    return SubmitToSet(*set, spec);
  }
  RequestSpec active = spec;
  active.op = ReduceOp::kActiveAverage;
  return SubmitToSet(*set, active);
}

Result<Operation*> Engine::SubmitToSet(ProcessSet* set, const RequestSpec& spec) {
  if (!spec.unnamed) return SubmitNamed(set, spec);
  RequestSpec named = spec;
  const std::string name =
      std::string(NameOf(spec.collective)) + ".noname." + std::to_string(set->unnamed);
  named.name = name;
  Result<Operation*> op = SubmitNamed(set, named);
  if (op.ok()) ++set->unnamed;  // what is refused is refused on this rank only, perhaps
  return op;
}

Result<Operation*> Engine::SubmitNamed(ProcessSet* set, const RequestSpec& spec) {
  if (spec.collective != Collective::kJoin) return SubmitOn(set, spec);
  if (Status checked = CheckRequest(spec, set->group); !checked.ok()) return checked;
  RequestSpec join = spec;
  join.name = NameTable::kJoinName;  // one in flight, whatever the caller calls it
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
  TensorName* name = names_.FindOwn(domain, spec.name);
  // A training step asks for the same as the one before: what its detail says was checked and told
  // to the peers then.
  const bool repeated = name != nullptr && name->own_detail_known &&
                        Describes(name->own_detail, spec, set->group.size());
  Status checked = repeated ? CheckRepeated(spec, set->group) : CheckRequest(spec, set->group);
  if (!checked.ok()) return checked;
  if (joined_[self_] != 0) return CheckNotJoined();
  if (name == nullptr) name = names_.Add(domain, set, spec.name);
  if (name->operation != nullptr || name->kept) return AlreadyInFlight(*name);
  if (!repeated) Describe(name, spec);
  Operation* op = operations_.Add();
  op->collective = spec.collective;
  op->name = name;
  op->set = set;
  op->call = calls_;
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
  // A join is told to the others even so: they go on without this rank.
  const bool join = spec.collective == Collective::kJoin;
  if (!gone_.empty() && !join && Unsatisfiable(*op->name)) return FailUnsatisfiable(op);
  if (spec.collective == Collective::kRemoveProcessSet) {
    sets_.Find(spec.process_set)->removing = true;
  }
  if (!unsent_.empty() || !Announce(op)) {
    unsent_.push_back(op);
    peers_.Nudge();
  }
  if (join) {
    NoteJoined(self_);
  } else if (Ready(*op->name)) {
    Start(op->name);
  }
}

// The name stands for something new from now on.
void Engine::Describe(TensorName* name, const RequestSpec& spec) {
  const Group& group = name->set->group;
  name->own_detail = DetailOf(spec, group.size());
  name->own_detail_known = false;
  name->agreed = false;
  // What every rank will find wrong goes no further than the announcement.
  name->refused = !IsControl(spec.collective) && !CheckAgreed(name->text, name->own_detail).ok();
  name->calls = CallsOf(name->own_detail, group);
  if (name->refused) name->calls.assign(name->calls.size(), {.group = &group});
}

Status Engine::PrepareOp(Operation* op, const RequestSpec& spec) {
  const TensorName& name = *op->name;
  const std::span<const TensorSpec> tensors = spec.tensors();
  op->parts.resize(name.calls.size());
  for (size_t i = 0; i < op->parts.size(); ++i) {
    Status prepared =
        PreparePart(op, &op->parts[i], name.calls[i], tensors.empty() ? nullptr : &tensors[i]);
    if (prepared.ok()) continue;
    for (OperationPart& part : op->parts) {
      if (part.state != nullptr) backend_.Abandon(std::move(part.state), false);
    }
    return prepared;
  }
  // Backends say nothing in this word of a join.
  if (spec.collective == Collective::kJoin) {
    const Duration now = clock_.Now().time_since_epoch();
    op->parts[0].descriptor.words[0] = static_cast<uint64_t>(now.count());
  }
  return Status::Ok();
}

Status Engine::PreparePart(Operation* op, OperationPart* part, const CollectiveCall& call,
                           const TensorSpec* tensor) {
  part->result.made_output = nullptr;
  part->result.received_splits.clear();
  part->done = false;
  part->call = call;
  part->call.result = &part->result;
  if (tensor != nullptr) {
    part->call.input = tensor->input;
    part->call.output = tensor->output;
    part->dimensions = static_cast<uint32_t>(tensor->shape.size());
    std::copy(tensor->shape.begin(), tensor->shape.end(), part->shape.begin());
  }
  if (op->set->group.on_one_host() && (op->name->refused || IsControl(op->collective))) {
    part->descriptor = {};
    return Status::Ok();
  }
  return backend_.Prepare(part->call, &part->state, &part->descriptor);
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
