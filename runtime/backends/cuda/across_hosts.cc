#include "runtime/backends/cuda/across_hosts.h"

#include <utility>

namespace hvd {
namespace {

using Stage = CudaOp::Stage;

constexpr size_t FactsAt(uint32_t members) {
  return RoundUp(CudaCell::BytesFor(members), kCacheLine);
}

HostsFacts& FactsIn(const Lease& lease) {
  return *reinterpret_cast<HostsFacts*>(lease.control + FactsAt(lease.members));
}

// The rows that each member sends to this one, and receives from it: allgather and alltoall.
void NoteExchange(CudaOp& op) {
  const std::vector<int64_t>& extents = op.agreement->agreed().extents;
  const uint32_t size = op.call.group->size();
  if (op.call.collective == Collective::kAllgather) op.received = extents;
  if (op.call.collective != Collective::kAlltoall) return;
  const auto row = extents.begin() + static_cast<ptrdiff_t>(op.self) * size;
  op.received.assign(row, row + size);
  op.sent = op.splits[op.self];
}

// As many extents as the members need.
bool HasExtents(CudaOp& op) {
  const size_t size = op.call.group->size(), count = op.agreement->agreed().extents.size();
  if (op.call.collective == Collective::kAllgather) return count == size;
  return op.call.collective != Collective::kAlltoall || count == size * op.members;
}

}  // namespace

Status AcrossHosts::Prepare(CudaOp& op, const MemberFacts& facts, BufferDescriptor* descriptor) {
  Result<Lease> lease = around_.leases.Open(op.members, FactsAt(op.members) + sizeof(HostsFacts));
  if (!lease.ok()) return lease.status();
  op.lease = *lease;
  HostsFacts& published = FactsIn(op.lease);
  published.nccl_version = facts.nccl_version;
  published.compute_capability = facts.compute_capability;
  published.place = facts.place;
  published.control = op.lease.control_at;
  published.refusal_bytes = 0;
  if (!op.refusal.empty()) published.Refuse(op.refusal);
  op.agreement = std::make_unique<HostsAgreement>(around_.host, op.call, &published);
  return op.agreement->Prepare(descriptor);
}

Status AcrossHosts::Start(CudaOp& op, const MemberInputs& parts) {
  op.stage = Stage::kAgreeing;
  const InterHostRequest* asked = parts.inter_host;
  if (asked != nullptr) {
    op.request = {asked->domain, std::string(asked->name), std::string(asked->detail), asked->part,
                  asked->part_count};
  }
  std::string note;
  if (asked == nullptr || asked->disagreement == nullptr) {
    const Result<HostNote> own = ReadFacts(op, parts);
    if (!own.ok()) return own.status();
    note = EncodeHostNote(*own);
  }
  return op.agreement->Start(parts, note);
}

Result<HostNote> AcrossHosts::ReadFacts(CudaOp& op, const MemberInputs& parts) {
  op.KeepParts(parts);
  std::vector<MemberFacts> facts;
  std::vector<uint32_t> ranks;
  HostNote note;
  for (uint32_t m = 0; m < op.members; ++m) {
    if (op.HasJoined(m)) {
      ReleaseFlagOf(op.lease.control, m)->store(1, std::memory_order_relaxed);
      continue;
    }
    const HostsFacts* member = &FactsIn(op.lease);
    if (m != op.self) {
      const Location at = LeaseDescriptor::In(parts.descriptors[m]).data;
      const Result<std::byte*> memory = around_.peer_memory.Resolve(at, sizeof(HostsFacts));
      if (!memory.ok()) return memory.status();
      member = reinterpret_cast<const HostsFacts*>(*memory);
    }
    if (member->refusal_bytes != 0) {
      if (!note.refuses) note.why = member->Refused();
      note.refuses = true;
      continue;
    }
    const Result<std::byte*> control =
        m == op.self ? op.lease.control
                     : around_.peer_memory.Resolve(member->control, CudaCell::BytesFor(op.members));
    if (!control.ok()) return control.status();
    op.controls[m] = *control;
    facts.push_back(
        {member->nccl_version, member->compute_capability, member->place, member->control});
    ranks.push_back(op.call.group->ranks[op.call.group->local_to_group[m]]);
  }
  return note.refuses ? note : NoteOfHost(facts, ranks);
}

Result<bool> AcrossHosts::Advance(CudaOp& op) {
  if (op.stage == Stage::kAgreeing) {
    const Result<bool> agreed = op.agreement->Advance();
    if (!agreed.ok()) {
      op.stage = Stage::kRefused;
      ReturnLease(op);
      return agreed;
    }
    if (!*agreed) return false;
    op.stage = Stage::kAgreed;
    HVD_RETURN_IF_ERROR(turns_.Add(op.agreement->agreed(), &op));
  }
  AdvanceTurns();
  if (op.stage == Stage::kRefused) {
    ReturnLease(op);
    return op.failure;
  }
  const bool waits = op.stage == Stage::kAgreed || op.stage == Stage::kLane;
  if (waits && !turns_.failure().ok()) return turns_.failure();
  return op.stage != Stage::kAgreed;
}

void AcrossHosts::AdvanceTurns() {
  while (AgreedTurns::Batch* batch = turns_.Next()) {
    if (!batch->begun) Begin(*batch);
    if (lane_ != nullptr) {
      if (Status pumped = lane_->Pump(around_.clock.Now()); !pumped.ok())
        return turns_.Fail(std::move(pumped));
      if (!lane_->idle()) return;
    }
    turns_.Pass();
  }
}

// A failure here affects all members, or ends the world.
void AcrossHosts::Begin(AgreedTurns::Batch& batch) {
  batch.begun = true;
  lane_ = nullptr;
  const std::vector<CudaOp*> ops = std::exchange(batch.ops, {});
  const Status begun = BeginRoute(ops);
  if (begun.ok()) return;
  for (CudaOp* op : ops) {
    op->failure = begun;
    op->stage = Stage::kRefused;
  }
}

Status AcrossHosts::BeginRoute(const std::vector<CudaOp*>& ops) {
  const Result<std::vector<HostNote>> notes = NotesFor(*ops.front());
  if (!notes.ok()) return notes.status();
  // The parts of a group need not be alike; those that are alike are executed together.
  for (size_t first = 0, end = 1; first < ops.size(); first = end++) {
    while (end < ops.size() && GoTogether(ops[first]->call, ops[end]->call)) ++end;
    HVD_RETURN_IF_ERROR(BeginAlike(
        {ops.begin() + static_cast<ptrdiff_t>(first), ops.begin() + static_cast<ptrdiff_t>(end)},
        *notes));
  }
  return Status::Ok();
}

Status AcrossHosts::BeginAlike(const std::vector<CudaOp*>& ops,
                               const std::vector<HostNote>& notes) {
  CudaOp& first = *ops.front();
  const Result<CudaChoice> choice =
      ChooseRouteAcrossHosts(first.call, notes, first.agreement->agreed().participants);
  if (!choice.ok()) return choice.status();
  for (CudaOp* op : ops) {
    op->choice = *choice;
    if (!HasExtents(*op)) return Internal("an agreement has not the extents of all members");
    if (choice->route == CudaRoute::kStaged) HVD_RETURN_IF_ERROR(around_.stage(*op));
  }
  if (choice->route == CudaRoute::kStaged) return Status::Ok();
  std::vector<uint64_t> places;
  for (const HostNote& note : notes) places.push_back(note.places);
  const Result<NcclLane*> lane = around_.lane(first, places);
  if (!lane.ok()) return lane.status();
  for (CudaOp* op : ops) NoteExchange(*op);
  (*lane)->AddBatch(ops);
  lane_ = *lane;
  return Status::Ok();
}

Result<std::vector<HostNote>> AcrossHosts::NotesFor(CudaOp& op) {
  std::vector<HostNote>& last = notes_[op.call.group->ranks];
  const std::vector<std::string>& notes = op.agreement->agreed().notes;
  if (!notes.empty()) last.clear();
  for (const std::string& bytes : notes) {
    Result<HostNote> note = DecodeHostNote(bytes);
    if (!note.ok()) return note.status();
    last.push_back(std::move(*note));
  }
  if (last.empty()) return Internal("the hosts have told nothing of their GPUs");
  return last;
}

void AcrossHosts::Forget(CudaOp& op) {
  if (op.stage == Stage::kRefused) return ReturnLease(op);
  // A part of a group that failed on all hosts may not know it yet: it has no turn.
  if (op.stage == Stage::kAgreeing && !op.agreement->Advance().ok()) return ReturnLease(op);
  const bool waits = op.stage == Stage::kAgreeing || op.stage == Stage::kAgreed;
  if (waits) turns_.Fail(Aborted("an operation that other hosts count on was given up"));
}

void AcrossHosts::ReturnLease(CudaOp& op) {
  if (op.lease.control == nullptr) return;
  if (op.controls.empty()) return around_.leases.Reclaim(&op.lease);  // not examined yet
  for (uint32_t m = 0; m < op.members; ++m) {
    if (m != op.self && op.controls[m] != nullptr) op.Release(m);
  }
  around_.leases.ReclaimWhenReleased(&op.lease, op.self);
}

}  // namespace hvd
