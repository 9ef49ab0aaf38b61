// Executing: from the last announcement of a round to its end.
#include <algorithm>
#include <utility>

#include "runtime/core/engine.h"
#include "runtime/core/request_text.h"

namespace hvd {
namespace {

// Every rank comes to the same error by itself.
bool SameEverywhere(const Status& status) {
  return status.code() == Code::kUnsupported || status.code() == Code::kInvalidArgument;
}

}  // namespace

bool Engine::Ready(const TensorName& name) const {
  if (name.operation == nullptr || !name.operation->sent || name.operation->started) return false;
  const uint32_t others = static_cast<uint32_t>(name.here.size()) - 1;
  return name.arrived == others ||
         (joined_count_ != 0 && name.arrived + AbsentMembers(name) == others);
}

void Engine::Start(TensorName* name) {
  Operation* op = name->operation;
  op->started = true;
  name->descriptors[op->set->group.local_index] = op->parts[0].descriptor;
  const Group& group = op->set->group;
  const bool join = op->collective == Collective::kJoin;
  if (join && group.on_one_host()) return FinishJoin(op);
  if (join) op->parts[0].call.root = group.local_to_group[LastJoined(*name)];
  Status agreed = join ? Status::Ok() : Agree(name);
  if (!agreed.ok() && group.on_one_host()) {
    // A disagreement is seen by all, so nobody works on our memory.
    name->ClearRound();
    return Complete(op, std::move(agreed), false);
  }
  Status started = group.on_one_host() ? StartParts(op) : StartCrossHost(op, agreed);
  name->ClearRound();
  if (!started.ok()) {
    FailHere(op, started);
  } else if (op->parts_left == 0) {
    Complete(op, Status::Ok(), false);
  } else {
    running_.push_back(op);
  }
}

// The same verdict on every rank: all compare the same details of the same ranks in the same order.
Status Engine::Agree(TensorName* name) {
  if (name->agreed && joined_count_ == 0) return Status::Ok();
  const Group& group = name->set->group;
  details_.clear();
  for (uint32_t i = 0; i < group.local_size(); ++i) {
    const uint32_t rank = group.ranks[group.local_to_group[i]];
    if (i == group.local_index) {
      details_.push_back({rank, &name->own_detail});
    } else if (name->here[i] != 0) {
      details_.push_back({rank, &name->details[i]});
    }
  }
  Status verdict = CompareDetails(name->text, details_);
  if (verdict.ok()) verdict = CheckAgreed(name->text, name->own_detail);
  if (verdict.ok() && details_.size() < group.local_size() && group.on_one_host()) {
    verdict = CheckJoined(*name);
  }
  name->agreed = verdict.ok() && details_.size() == group.local_size();
  return verdict;
}

Status Engine::StartParts(Operation* op) {
  op->parts_left = op->parts.size();
  for (size_t i = 0; i < op->parts.size(); ++i) {
    OperationPart& part = op->parts[i];
    if (!IsControl(op->collective)) {  // nothing is moved when process sets change
      Result<bool> complete = backend_.Start(part.call, part.state.get(), PartsOf(*op->name, i));
      if (!complete.ok()) return complete.status();
      if (!*complete) continue;
    }
    part.done = true;
    part.state.reset();
    --op->parts_left;
  }
  return Status::Ok();
}

// The backend agrees with the other hosts. A disagreement is told there as well, and comes back to
// all alike.
Status Engine::StartCrossHost(Operation* op, const Status& agreed) {
  const TensorName& name = *op->name;
  const std::string detail = EncodeDetail(name.own_detail, name.text);
  const size_t count = agreed.ok() ? op->parts.size() : 1;
  CrossHostRequest cross_host{name.domain <= 0 ? name.domain : op->set->instance,
                              name.text,
                              detail,
                              0,
                              static_cast<uint32_t>(count),
                              agreed.ok() ? nullptr : &agreed};
  op->parts_left = count;
  for (size_t i = 0; i < op->parts.size(); ++i) {
    OperationPart& part = op->parts[i];
    part.done = i >= count;
    if (part.done) {
      if (part.state != nullptr) backend_.Abandon(std::move(part.state), false);
      continue;
    }
    cross_host.part = static_cast<uint32_t>(i);
    MemberInputs parts{name.descriptors, {}, {}};
    if (agreed.ok()) parts = PartsOf(name, i);
    parts.cross_host = &cross_host;
    Result<bool> complete = backend_.Start(part.call, part.state.get(), parts);
    if (!complete.ok()) return complete.status();
  }
  return Status::Ok();
}

// What the members brought for one tensor.
MemberInputs Engine::PartsOf(const TensorName& name, size_t part) {
  const Operation& op = *name.operation;
  const size_t members = name.here.size();
  const uint32_t own = op.set->group.local_index;
  MemberInputs parts{name.descriptors, {}, {}};
  if (part != 0) {
    part_descriptors_.assign(members, {});
    for (size_t i = 0; i < members; ++i) {
      if (name.here[i] != 0) part_descriptors_[i] = name.more_descriptors[i][part - 1];
    }
    part_descriptors_[own] = op.parts[part].descriptor;
    parts.descriptors = part_descriptors_;
  }
  if (op.collective == Collective::kAllgather || op.collective == Collective::kAlltoall) {
    extents_.clear();
    for (size_t i = 0; i < members; ++i) {
      if (i != own && name.here[i] == 0) {  // has joined
        extents_.push_back({});
        continue;
      }
      const Detail::Part& detail = (i == own ? name.own_detail : name.details[i]).parts[part];
      extents_.push_back({detail.rows(), detail.splits});
    }
    parts.extents = extents_;
  }
  if (joined_count_ == 0) return parts;
  absent_.assign(members, 0);
  for (size_t i = 0; i < members; ++i) absent_[i] = i != own && name.here[i] == 0 ? 1 : 0;
  if (AbsentMembers(name) != 0) parts.joined = absent_;
  return parts;
}

// The backend failed after all have agreed. Where that is so on this rank alone, the others would
// wait for it for ever.
void Engine::FailHere(Operation* op, const Status& status) {
  std::string name = Quoted(op->name->text);
  // With other hosts, disagreements and ends are told to all.
  const bool told = !op->set->group.on_one_host() &&
                    (status.code() == Code::kMismatch || status.code() == Code::kAborted);
  Complete(op, status, true);
  if (told || SameEverywhere(status)) return;
  EndWorld("rank " + std::to_string(WorldRank(self_)) + " cannot go on in " + name + ": " +
           status.message());
}

void Engine::Advance(Operation* op) {
  for (OperationPart& part : op->parts) {
    if (part.done) continue;
    Result<bool> complete = backend_.Advance(part.call, part.state.get());
    if (!complete.ok()) {
      std::erase(running_, op);
      return FailHere(op, complete.status());
    }
    if (!*complete) continue;
    part.done = true;
    part.state.reset();
    --op->parts_left;
    peers_.WakeAll();
  }
  if (op->parts_left != 0) return;
  std::erase(running_, op);
  Complete(op, Status::Ok(), false);
}

void Engine::AdvanceOthers(const Operation* except) {
  for (size_t i = 0; i < running_.size();) {
    Operation* op = running_[i];
    if (op != except) Advance(op);
    if (i < running_.size() && running_[i] == op) ++i;
  }
}

void Engine::Complete(Operation* op, Status status, bool peers_may_work) {
  for (OperationPart& part : op->parts) {
    if (part.state != nullptr) backend_.Abandon(std::move(part.state), peers_may_work);
    const bool written = peers_may_work && op->started && !part.done;
    if (!status.ok() && !written && part.result.made_output != nullptr) {
      heap_.Free(part.result.made_output);
    }
    if (!status.ok()) part.result.made_output = nullptr;
  }
  TensorName* name = std::exchange(op->name, nullptr);
  name->operation = nullptr;
  name->kept = true;
  op->kept_name = name;
  done_.push_back(op);
  if (name->domain == NameTable::kSetsDomain) ChangeSets(op, name->own_detail, status.ok());
  if (op->collective == Collective::kJoin && op->started && !op->set->group.on_one_host()) {
    op->answer = static_cast<int32_t>(op->parts[0].result.rows);
    ForgetJoins();
  }
  if (status.code() == Code::kAborted && closed_.ok()) peers_.NoteFailed();
  op->status = std::move(status);
  op->message = {};
  op->done = true;
  sets_.Release(std::exchange(op->set, nullptr));
  if (sleepers_ > 0) peers_.WakeSelf();
}

// A peer that has heard what we announced may be at work on our memory, now or later.
void Engine::FailAll(const Status& status) {
  if (closed_.ok()) {
    closed_ = status;
    peers_.NoteFailed();
  }
  unsent_.clear();
  running_.clear();
  operations_.ForEachPending([&](Operation& op) { Complete(&op, status, op.sent && count_ > 1); });
}

// ---- ranks that have left

// Fails operations that wait for a rank which has left and sent everything it had to say.
void Engine::FailWhatNeedsLeavers() {
  for (uint32_t peer = 0; peer < count_; ++peer) {
    if (peer == self_ || !peers_.HasLeft(peer)) continue;
    Receive();
    if (!peers_.Peek(peer).empty() || assemblies_[peer].complete()) continue;
    if (std::find(gone_.begin(), gone_.end(), peer) == gone_.end()) gone_.push_back(peer);
    operations_.ForEachPending([&](Operation& op) {
      const bool untold = op.collective == Collective::kJoin && !op.sent;
      if (untold || !WaitsInVainFor(peer, op)) return;
      std::erase(unsent_, &op);
      std::erase(running_, &op);
      FailUnsatisfiable(&op);
    });
  }
}

void Engine::FailUnsatisfiable(Operation* op) {
  uint32_t missing = gone_.back();
  for (uint32_t peer : gone_) {
    if (WaitsInVainFor(peer, *op)) missing = peer;
  }
  Complete(op,
           Aborted("rank " + std::to_string(WorldRank(missing)) +
                   " left the world before it took part in " + Quoted(op->name->text) +
                   ": it called shutdown or came to its end"),
           op->started);
}

bool Engine::WaitsInVainFor(uint32_t peer, const Operation& op) const {
  const uint32_t member = op.set->index_of_peer[peer];
  if (member == ProcessSet::kNotHere) return false;
  if (!op.started) {
    const bool absent = joined_[peer] != 0 && op.collective != Collective::kJoin;
    return op.name->here[member] == 0 && !absent;
  }
  return std::any_of(op.parts.begin(), op.parts.end(), [&](const OperationPart& part) {
    return !part.done && backend_.Needs(part.call, part.state.get(), peer);
  });
}

// No round of the name can be complete any more. The same on every rank, once it has noticed.
bool Engine::Unsatisfiable(const TensorName& name) const {
  return std::any_of(gone_.begin(), gone_.end(), [&](uint32_t peer) {
    const uint32_t member = MemberOf(name, peer);
    if (member == ProcessSet::kNotHere) return false;
    const bool absent = joined_[peer] != 0 && name.domain != NameTable::kJoinDomain;
    return name.here[member] == 0 && !absent;
  });
}

}  // namespace hvd
