#include "runtime/backends/hosts/hosts_backend.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>

#include "runtime/backends/hosts/leader_sum.h"
#include "runtime/backends/hosts/members/results.h"
#include "runtime/backends/rank_list.h"
#include "runtime/base/text/format.h"
#include "runtime/device/host_copy.h"

namespace hvd {
namespace {

bool SendsData(const CollectiveCall& call) {
  switch (call.collective) {
    case Collective::kBarrier:
    case Collective::kJoin: return false;
    case Collective::kBroadcast: return call.root == call.group->index;
    default: return true;
  }
}

// Its result is the plain sum in InterHostType: each member scales and rounds its own copy.
bool LeavesSum(const CollectiveCall& call) {
  return call.collective == Collective::kAllreduce && call.op != ReduceOp::kAdasum &&
         call.agreement == nullptr;
}

bool MakesSum(const CollectiveCall& call) {
  if (call.agreement != nullptr) return false;
  return call.collective == Collective::kReducescatter || LeavesSum(call);
}

// One rank on each host: nothing to add up before the hosts exchange. The same on all ranks.
bool GoesStraight(const CollectiveCall& call, const HostParts& hosts) {
  return LeavesSum(call) && hosts.parts.size() == call.group->ranks.size();
}

bool HasExtents(const CollectiveCall& call) {
  return call.collective == Collective::kAllgather || call.collective == Collective::kAlltoall;
}

// Operations with the same key may travel together, also averages straight from input to output:
// these need one divisor.
uint64_t FusionKey(const CollectiveCall& call) {
  if (call.collective != Collective::kAllreduce || call.op == ReduceOp::kAdasum) return 0;
  constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15u;
  auto scale = std::bit_cast<uint64_t>(call.postscale) * kMultiplier;
  if (call.agreement != nullptr)
    scale = (scale ^ std::bit_cast<uint64_t>(call.prescale)) * kMultiplier;
  if (call.op == ReduceOp::kAverage) scale = (scale ^ call.group->size()) * kMultiplier;
  return (scale << 16) | uint64_t{static_cast<uint8_t>(call.op)} << 8 |
         (uint64_t{static_cast<uint8_t>(call.dtype)} + 1);
}

// This host's report of an operation, without its tensors.
ReadyMessage ReadyFor(const CollectiveCall& call, const MemberInputs& parts) {
  ReadyMessage msg;
  msg.domain = parts.inter_host->domain;
  if (call.group->id != 0) msg.ranks = call.group->ranks;
  msg.collective = call.collective;
  msg.name = parts.inter_host->name;
  msg.detail = parts.inter_host->detail;
  msg.fusion_key = FusionKey(call);
  msg.note = parts.inter_host->note;
  msg.participants = parts.inter_host->participants;
  for (uint32_t m = 0; m < parts.joined.size(); ++m) {
    if (parts.joined[m] == 0) continue;
    msg.joined.push_back(call.group->ranks[call.group->local_to_group[m]]);
  }
  return msg;
}

size_t InputBytes(const CollectiveCall& call, const MemberInputs& parts, uint32_t member) {
  if (call.agreement != nullptr) return 0;
  if (!HasExtents(call)) return call.bytes();
  return static_cast<size_t>(parts.extents[member].rows) * call.row_bytes();
}

constexpr size_t ControlBytes(uint32_t members) {
  return ReleaseFlagBytes(members) + sizeof(ResultStatus) + sizeof(WorkMark) * members;
}

ResultStatus* ResultStatusIn(std::byte* control, uint32_t members) {
  return reinterpret_cast<ResultStatus*>(control + ReleaseFlagBytes(members));
}

WorkMark* WorkMarkIn(std::byte* control, uint32_t members, uint32_t member) {
  return reinterpret_cast<WorkMark*>(control + ReleaseFlagBytes(members) + sizeof(ResultStatus)) +
         member;
}

// An agreement involves the other hosts even if all members are here.
bool StaysHere(const CollectiveCall& call) {
  return call.group->on_one_host() && call.agreement == nullptr;
}

// `self`: the member, among those on this host.
Status ReadAgreement(std::string_view bytes, uint32_t self, Agreement* agreement) {
  Result<AgreedPart> agreed = DecodeAgreed(bytes);
  if (!agreed.ok()) return agreed.status();
  if (self >= agreed->turns.size()) return Internal("an agreement that leaves this rank out");
  *agreement = std::move(agreed->agreement);
  agreement->turn = agreed->turns[self];
  return Status::Ok();
}

// Of the memory in which the members of the host `here` find the result.
size_t ResultBytes(const CollectiveCall& call, const std::shared_ptr<const HostParts>& hosts,
                   uint32_t here) {
  if (LeavesSum(call)) return call.count * SizeOf(InterHostType(call));
  if (call.collective != Collective::kReducescatter) return call.bytes();
  const auto part = std::ranges::find(hosts->parts, here, &HostParts::Part::host);
  return ScatteredBytes(call, *part, call.group->size());
}

}  // namespace

// An operation about which hosts agree.
struct HostsBackend::MemberOp final : OpState {
  Lease lease;                     // with the board that is used if this rank leads
  std::byte* input = nullptr;      // where peers can read it
  void* staging = nullptr;         // `input`, if that is a copy
  uint32_t members = 0, self = 0;  // of Group::local
  bool started = false, settled = false, leads = false;
  bool straight = false;              // LeaderTensor::straight
  uint32_t leader = 0;                // index in Group::local
  std::vector<uint32_t> taking_part;  // indices in Group::local
  std::byte* control = nullptr;       // of the leader
  ResultStatus* result_status = nullptr;
  std::vector<const void*> inputs;  // of those that take part, where this rank may help with a sum
  std::optional<LocalSum> sum;
  std::shared_ptr<LeaderOp> op;  // if this rank leads
  std::shared_ptr<LeaderTensor> part;

  WorkMark* work_mark(uint32_t member) const { return WorkMarkIn(control, members, member); }
  // Adds up a part of this host's sum.
  void Help(const CollectiveCall& call, SharedMemoryMap& peer_memory) {
    if (inputs.empty() || result_status->sum.segment == 0) return;
    if (!sum) {
      const size_t bytes = call.count * SizeOf(InterHostType(call));
      Result<std::byte*> place = peer_memory.Resolve(result_status->sum, bytes);
      if (!place.ok()) {
        inputs.clear();  // the leader does it
        return;
      }
      sum.emplace(call, inputs, *place, result_status, work_mark(self));
    }
    sum->Help();
  }
  // Until they are done, no rank on another host can continue either.
  std::vector<uint32_t> NeighboursAtWork(const Group& group) const {
    std::vector<uint32_t> at_work;
    for (uint32_t m = 0; m < members; ++m) {
      if (m == self || work_mark(m)->load(std::memory_order_relaxed) == 0) continue;
      at_work.push_back(group.ranks[group.local_to_group[m]]);
    }
    return at_work;
  }
};

// An operation that another backend serves.
struct HostsBackend::OneHostOp final : OpState {
  std::unique_ptr<OpState> state;
};

HostsBackend::HostsBackend(Backend& one_host, SharedHeap& heap, SharedMemoryMap& peer_memory,
                           InterHostComm& comm, Options options)
    : one_host_(one_host),
      leases_(heap),
      peer_memory_(peer_memory),
      map_(options.leader_service.map),
      nudge_host_(std::move(options.nudge_host)),
      leader_service_(comm, heap, std::move(options.leader_service)) {}

HostsBackend::~HostsBackend() = default;

// ---- before the members of this host have agreed

Status HostsBackend::Prepare(const CollectiveCall& call, std::unique_ptr<OpState>* state,
                             BufferDescriptor* descriptor) {
  if (StaysHere(call)) {
    std::unique_ptr<OpState> inner;
    Status prepared = one_host_.Prepare(call, &inner, descriptor);
    if (!prepared.ok()) return prepared;
    if (inner != nullptr) {
      auto op = std::make_unique<OneHostOp>();
      op->state = std::move(inner);
      *state = std::move(op);
    }
    return Status::Ok();
  }
  leases_.Collect();
  auto op = std::make_unique<MemberOp>();
  *descriptor = {};
  Status lent = LendInput(call, *op, descriptor);
  if (!lent.ok()) {
    Abandon(std::move(op), false);
    return lent;
  }
  *state = std::move(op);
  return Status::Ok();
}

Status HostsBackend::LendInput(const CollectiveCall& call, MemberOp& op,
                               BufferDescriptor* descriptor) {
  op.members = call.group->local_size();
  op.self = call.group->local_index;
  Result<Lease> lease = leases_.Open(op.members, ControlBytes(op.members));
  if (!lease.ok()) return lease.status();
  op.lease = *lease;
  op.straight = GoesStraight(call, *last_parts_.Of(map_, call.group->ranks));
  Location data;
  if (call.agreement != nullptr) {
    data = leases_.heap().Locate(call.input, 1).value_or(Location{});
  } else if (!op.straight && SendsData(call) && call.bytes() != 0) {
    SharedHeap& heap = leases_.heap();
    std::optional<Location> place = heap.Locate(call.input, call.bytes());
    op.input = static_cast<std::byte*>(const_cast<void*>(call.input));
    if (!place) {
      Status why;
      op.staging = heap.Allocate(call.bytes(), /*zeroed=*/false, &why, Until::kWorldEnds);
      if (op.staging == nullptr) return why;
      {
        const NotedActivity copying(call.activities, TraceActivity::kCopyIn, call.bytes());
        CopyRange(op.staging, call.input, call.bytes());
      }
      op.input = static_cast<std::byte*>(op.staging);
      place = heap.Locate(op.staging, call.bytes());
    }
    data = *place;
  }
  LeaseDescriptor{data, op.lease.control_at, op.staging != nullptr}.WriteTo(descriptor);
  return Status::Ok();
}

void HostsBackend::WorkAhead(const CollectiveCall& call, OpState* state) {
  if (state == nullptr || !call.group->on_one_host()) return;
  one_host_.WorkAhead(call, static_cast<OneHostOp*>(state)->state.get());
}

// ---- after they have agreed

Result<bool> HostsBackend::Start(const CollectiveCall& call, OpState* state,
                                 const MemberInputs& parts) {
  if (StaysHere(call)) {
    auto* inner = static_cast<OneHostOp*>(state);
    return one_host_.Start(call, inner == nullptr ? nullptr : inner->state.get(), parts);
  }
  auto& op = static_cast<MemberOp&>(*state);
  if (parts.inter_host == nullptr) {
    return Internal("an operation over several hosts was started without its name");
  }
  op.started = true;
  for (uint32_t m = 0; m < op.members; ++m) {
    if (parts.joined.empty() || parts.joined[m] == 0) op.taking_part.push_back(m);
  }
  // Every rank announces its own join.
  if (call.collective == Collective::kJoin) op.taking_part = {op.self};
  op.leader = op.taking_part[0];
  op.leads = op.leader == op.self;
  if (op.leads) {
    ++led_;
    Lead(call, op, parts);
    return false;
  }
  HVD_RETURN_IF_ERROR(Follow(call, op, parts));
  if (op.result_status->now() == Phase::kSilent && nudge_host_) nudge_host_();
  return false;
}

Status HostsBackend::Follow(const CollectiveCall& call, MemberOp& op, const MemberInputs& parts) {
  const Location control = LeaseDescriptor::In(parts.descriptors[op.leader]).control;
  Result<std::byte*> resolved = peer_memory_.Resolve(control, ControlBytes(op.members));
  if (!resolved.ok()) return resolved.status();
  op.control = *resolved;
  op.result_status = ResultStatusIn(op.control, op.members);
  const bool sound = parts.inter_host->disagreement == nullptr;
  if (!sound || !MakesSum(call) || call.bytes() == 0) return Status::Ok();
  Result<std::vector<const void*>> inputs = InputsOf(call, op, parts);
  if (!inputs.ok()) return inputs.status();
  op.inputs = std::move(*inputs);
  return Status::Ok();
}

// Where the inputs of the participants are in this process; null: no input.
Result<std::vector<const void*>> HostsBackend::InputsOf(const CollectiveCall& call,
                                                        const MemberOp& op,
                                                        const MemberInputs& parts) {
  std::vector<const void*> inputs;
  for (uint32_t m : op.taking_part) {
    const Location data = LeaseDescriptor::In(parts.descriptors[m]).data;
    const size_t bytes = InputBytes(call, parts, m);
    if (m == op.self || data.segment == 0 || bytes == 0) {
      inputs.push_back(m == op.self ? op.input : nullptr);
      continue;
    }
    Result<std::byte*> resolved = peer_memory_.Resolve(data, bytes);
    if (!resolved.ok()) return resolved.status();
    inputs.push_back(*resolved);
  }
  return inputs;
}

// A failure here is reported to the other hosts like a disagreement, so that no rank waits for us.
void HostsBackend::Lead(const CollectiveCall& call, MemberOp& op, const MemberInputs& parts) {
  const InterHostRequest& inter_host = *parts.inter_host;
  op.control = op.lease.control;
  op.result_status = ResultStatusIn(op.control, op.members);
  for (uint32_t m = 0; m < op.members; ++m) {
    const bool looks =
        std::find(op.taking_part.begin(), op.taking_part.end(), m) != op.taking_part.end();
    if (!looks) op.lease.release_flags()[m].store(1, std::memory_order_relaxed);
  }
  if (inter_host.part == 0) {
    assembling_ = std::make_shared<LeaderOp>();
    assembling_->ready = ReadyFor(call, parts);
    assembling_->hosts = last_parts_.Of(map_, call.group->ranks);
    assembling_->set_size = call.group->size();
    if (call.activities != nullptr) assembling_->activities.emplace(call.activities->clock());
    assembling_->last_here = call.collective == Collective::kJoin && call.root < call.group->size()
                                 ? call.group->ranks[call.root]
                                 : map_.rank;
  }
  op.op = assembling_;
  op.part = std::make_shared<LeaderTensor>();
  op.part->result_status = op.result_status;
  assembling_->parts.push_back(op.part);
  ReadyMessage& ready = assembling_->ready;
  const Status* disagreement = inter_host.disagreement;
  Status built = disagreement != nullptr ? *disagreement : BuildPart(call, op, parts, *op.part);
  if (!built.ok() && ready.failure.ok()) ready.failure = built;
  if (ready.fusion_key != FusionKey(call)) ready.fusion_key = 0;
  if (inter_host.part + 1 < inter_host.part_count) return;
  // Several at once may be fused, which saves more.
  if (led_ == assembling_->parts.size()) ready.sum = SumToOffer(*assembling_);
  leader_service_.Post(std::exchange(assembling_, nullptr));
}

Status HostsBackend::BuildPart(const CollectiveCall& call, MemberOp& op, const MemberInputs& parts,
                               LeaderTensor& part) {
  part.call = call;
  part.call.input = part.call.output = nullptr;
  part.call.group = nullptr;
  part.call.result = nullptr;
  part.call.splits = nullptr;
  part.call.activities = nullptr;
  PartInfo msg;
  msg.bytes = call.bytes();
  part.straight = op.straight;
  if (op.straight) std::tie(part.input, part.output) = std::tie(call.input, call.output);
  if (HasExtents(call)) {
    for (uint32_t m : op.taking_part) {
      const Extent& extent = parts.extents[m];
      part.extents.emplace_back(extent.splits.begin(), extent.splits.end());
      if (call.collective == Collective::kAllgather) part.extents.back() = {extent.rows};
      msg.extents.insert(msg.extents.end(), part.extents.back().begin(), part.extents.back().end());
    }
  }
  if (call.op == ReduceOp::kAdasum && call.collective == Collective::kAllreduce) {
    msg.extents = {static_cast<int64_t>(op.taking_part.size())};
  }
  op.op->ready.parts.push_back(std::move(msg));
  if (!op.straight) {
    Result<std::vector<const void*>> inputs = InputsOf(call, op, parts);
    if (!inputs.ok()) return inputs.status();
    for (const void* input : *inputs) part.inputs.push_back(static_cast<const std::byte*>(input));
    op.inputs = std::move(*inputs);
    HVD_RETURN_IF_ERROR(AllocateResult(call, op, part));
  }
  op.result_status->Enter(Phase::kStarted);
  return Status::Ok();
}

// If the size is already known; otherwise BatchExecutor allocates the memory.
Status HostsBackend::AllocateResult(const CollectiveCall& call, MemberOp& op, LeaderTensor& part) {
  if (call.agreement != nullptr || HasExtents(call) || call.bytes() == 0) return Status::Ok();
  op.result_status->result_bytes = ResultBytes(call, op.op->hosts, map_.here());
  const bool sums = MakesSum(call);
  const size_t bytes = sums ? call.count * SizeOf(InterHostType(call)) : call.bytes();
  SharedHeap& heap = leases_.heap();
  Status why;
  part.memory =
      static_cast<std::byte*>(heap.Allocate(bytes, /*zeroed=*/false, &why, Until::kWorldEnds));
  if (part.memory == nullptr) return why;
  if (!sums) return Status::Ok();
  part.local_sum = LocalSum(call, op.inputs, part.memory, op.result_status, op.work_mark(op.self));
  op.sum = part.local_sum;
  op.result_status->sum = *heap.Locate(part.memory, bytes);
  if (part.local_sum.IsSmall()) part.local_sum.Help();
  return Status::Ok();
}

// ---- in progress

Result<bool> HostsBackend::Advance(const CollectiveCall& call, OpState* state) {
  if (StaysHere(call)) {
    auto* inner = static_cast<OneHostOp*>(state);
    return one_host_.Advance(call, inner == nullptr ? nullptr : inner->state.get());
  }
  auto& op = static_cast<MemberOp&>(*state);
  switch (op.result_status->now()) {
    case Phase::kSilent: return false;
    case Phase::kStarted: op.Help(call, peer_memory_); return false;
    case Phase::kFailed: {
      Status why = ReadFailure(op);
      Finish(op);
      return why;
    }
    case Phase::kDone: break;
  }
  // Of a group, with its first tensor.
  if (op.leads && call.activities != nullptr && op.op->activities) {
    call.activities->Append(*op.op->activities);
    op.op->activities.reset();
  }
  Status taken = ReadResult(call, op);
  Finish(op);
  if (!taken.ok()) return taken;
  return true;
}

Status HostsBackend::ReadFailure(const MemberOp& op) {
  const auto code = static_cast<Code>(op.result_status->code);
  std::string sentence = "an operation with other hosts failed, and there was no memory to say why";
  if (op.leads && op.result_status->text.segment != 0) {
    sentence.assign(reinterpret_cast<const char*>(op.part->memory), op.result_status->text_bytes);
  } else if (op.result_status->text.segment != 0) {
    Result<std::byte*> text =
        peer_memory_.Resolve(op.result_status->text, op.result_status->text_bytes);
    if (text.ok())
      sentence.assign(reinterpret_cast<const char*>(*text), op.result_status->text_bytes);
  }
  Status failure(code, std::move(sentence));
  if (op.result_status->broke != 0) leader_service_.NoteFailure(failure);
  return failure;
}

Status HostsBackend::ReadResult(const CollectiveCall& call, const MemberOp& op) {
  if (call.collective == Collective::kBarrier) return Status::Ok();
  if (call.collective == Collective::kJoin) {
    if (call.result != nullptr) call.result->rows = op.result_status->last_joined;
    return Status::Ok();
  }
  const ResultStatus& result_status = *op.result_status;
  const Result<const std::byte*> of_leader = ResultMemory(op);
  if (!of_leader.ok()) return of_leader.status();
  const std::byte* memory = *of_leader;
  if (call.agreement != nullptr) {
    const size_t bytes = memory == nullptr ? 0 : result_status.result_bytes;
    return ReadAgreement({reinterpret_cast<const char*>(memory), bytes}, op.self, call.agreement);
  }
  const std::shared_ptr<const HostParts> of_set = last_parts_.Of(map_, call.group->ranks);
  const HostParts& hosts = *of_set;
  size_t here = 0;
  while (hosts.parts[here].host != map_.here()) ++here;
  std::span<const int64_t> table;
  if (HasExtents(call)) {
    const size_t rows = call.collective == Collective::kAllgather ? 1 : op.members;
    table = {reinterpret_cast<const int64_t*>(memory), rows * call.group->size()};
  }
  ResultPlan plan = PlanResult(call, hosts, here, table);
  void* output = call.output;
  if (call.result != nullptr) {
    call.result->rows = plan.rows;
    call.result->received_splits = std::move(plan.received_splits);
  }
  if (output == nullptr && plan.bytes != 0) {
    Status why;
    output = leases_.heap().AllocateAnywhere(plan.bytes, &why);
    if (output == nullptr) return why;
    call.result->made_output = output;
  }
  if (op.straight) return Status::Ok();  // it is there
  const NotedActivity handing(plan.bytes != 0 ? call.activities : nullptr, TraceActivity::kHandOut,
                              plan.bytes);
  if (LeavesSum(call) && plan.bytes != 0) {
    const void* sum = memory;
    const uint32_t divisor = DivisorOf(call.op, call.group->size(), result_status.participants);
    FinishSum(call, divisor, {&sum, 1}, output, call.count);
    return Status::Ok();
  }
  for (const ResultPiece& piece : plan.pieces) {
    CopyRange(static_cast<std::byte*>(output) + piece.target,
              memory + result_status.table_bytes + piece.source, piece.bytes);
  }
  return Status::Ok();
}

// Null if there is no data.
Result<const std::byte*> HostsBackend::ResultMemory(const MemberOp& op) {
  if (op.leads) return op.part->memory;
  const ResultStatus& result_status = *op.result_status;
  if (result_status.result.segment == 0) return nullptr;
  const Result<std::byte*> resolved =
      peer_memory_.Resolve(result_status.result, result_status.result_bytes);
  if (!resolved.ok()) return resolved.status();
  return *resolved;
}

// No member reads inputs any more, according to the result status; this one stops reading the
// leader's memory.
void HostsBackend::Finish(MemberOp& op) {
  op.settled = true;
  if (op.staging != nullptr) leases_.heap().Free(std::exchange(op.staging, nullptr));
  if (op.leads) {
    --led_;
    op.lease.staging = op.part->memory;
    leases_.ReclaimWhenReleased(&op.lease, op.self);
    return;
  }
  reinterpret_cast<ReleaseFlag*>(op.control)[op.self].store(1, std::memory_order_release);
  leases_.Reclaim(&op.lease);
}

// ---- ends

bool HostsBackend::Needs(const CollectiveCall& call, const OpState* state, uint32_t peer) const {
  if (StaysHere(call)) {
    const auto* inner = static_cast<const OneHostOp*>(state);
    return one_host_.Needs(call, inner == nullptr ? nullptr : inner->state.get(), peer);
  }
  const auto& op = static_cast<const MemberOp&>(*state);
  if (!op.started || op.leads || call.group->local[op.leader] != peer) return false;
  const Phase phase = op.result_status->now();
  return phase != Phase::kDone && phase != Phase::kFailed;
}

std::string HostsBackend::Awaits(const CollectiveCall& call, const OpState* state) const {
  if (StaysHere(call)) {
    const auto* inner = static_cast<const OneHostOp*>(state);
    return one_host_.Awaits(call, inner == nullptr ? nullptr : inner->state.get());
  }
  const auto& op = static_cast<const MemberOp&>(*state);
  if (!op.started) return "";
  const std::vector<uint32_t> at_work = op.NeighboursAtWork(*call.group);
  return at_work.empty() ? op.result_status->awaited.Text() : AwaitedParts(at_work);
}

AwaitedRanks HostsBackend::AwaitedBy(const CollectiveCall& call, const OpState* state) const {
  if (StaysHere(call)) {
    const auto* inner = static_cast<const OneHostOp*>(state);
    return one_host_.AwaitedBy(call, inner == nullptr ? nullptr : inner->state.get());
  }
  const auto& op = static_cast<const MemberOp&>(*state);
  if (!op.started) return {{}, true};
  AwaitedRanks awaited{op.NeighboursAtWork(*call.group), true};
  if (awaited.ranks.empty()) awaited.ranks = op.result_status->awaited.Ranks(&awaited.submitted);
  return awaited;
}

void HostsBackend::Withdraw(const CollectiveCall& call, const OpState* state, std::string why) {
  if (StaysHere(call)) return;
  const auto& op = static_cast<const MemberOp&>(*state);
  if (op.started && op.leads) leader_service_.Withdraw(op.op->ready.ticket, std::move(why));
}

void HostsBackend::Abandon(std::unique_ptr<OpState> state, bool peers_may_work) {
  if (state == nullptr) return;
  if (auto* inner = dynamic_cast<OneHostOp*>(state.get())) {
    one_host_.Abandon(std::move(inner->state), peers_may_work);
    return;
  }
  auto& op = static_cast<MemberOp&>(*state);
  if (op.settled) return;
  if (op.started) {
    if (op.leads) --led_;
    if (op.straight) leader_service_.LetGo(*op.op, *op.part);
    // The leader's service, or a peer, may be using this memory: it is never reused.
    if (op.leads && op.op != assembling_) {
      leader_service_.Withdraw(op.op->ready.ticket,
                               Format("rank {} gave up '{}'", map_.rank, op.op->ready.name));
    }
    return;
  }
  if (peers_may_work) return;
  if (op.staging != nullptr) leases_.heap().Free(op.staging);
  if (op.lease.control != nullptr) leases_.Reclaim(&op.lease);
}

}  // namespace hvd
