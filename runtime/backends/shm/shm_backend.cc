#include "runtime/backends/shm/shm_backend.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/backends/rank_list.h"
#include "runtime/backends/shm/gather_plan.h"

namespace hvd {
namespace {

// Barriers and sufficiently small broadcasts and allreduces complete in one exchange and need no
// state.
bool IsStateless(const CollectiveCall& call) {
  switch (call.collective) {
    case Collective::kBarrier: return true;
    case Collective::kAllreduce:
    case Collective::kBroadcast:
      return call.group->local_size() == 1 || FitsRequest(call.bytes(), call.group->local_size());
    default: return false;
  }
}

void OfferPayload(const CollectiveCall& call, BufferDescriptor* descriptor) {
  const Group& group = *call.group;
  *descriptor = {};
  const bool sends = call.collective == Collective::kAllreduce ||
                     (call.collective == Collective::kBroadcast && call.root == group.local_index);
  if (sends && group.local_size() > 1) {
    descriptor->payload = {static_cast<const std::byte*>(call.input), call.bytes()};
  }
}

// The inputs of a reduction, in order of rank.
class InputList {
 public:
  explicit InputList(uint32_t most)
      : heap_(most > kOnStack ? most : 0), inputs_(most > kOnStack ? heap_.data() : stack_) {}
  InputList(const InputList&) = delete;
  void Add(const void* input) { inputs_[count_++] = input; }
  std::span<const void* const> all() const { return {inputs_, count_}; }

 private:
  static constexpr uint32_t kOnStack = 64;
  const void* stack_[kOnStack];
  std::vector<const void*> heap_;
  const void** inputs_;
  uint32_t count_ = 0;
};

void ReducePayloads(const CollectiveCall& call, const MemberInputs& parts) {
  const uint32_t members = call.group->local_size();
  InputList inputs(members);
  for (uint32_t m = 0; m < members; ++m) {
    if (!parts.joined.empty() && parts.joined[m] != 0) continue;
    inputs.Add(m == call.group->local_index ? call.input : parts.descriptors[m].payload.data());
  }
  CombineAll(call, inputs.all(), call.output);
}

// Copies its piece of each member's input, all of the same size. The own piece goes first, since
// the output may overlap the input.
void GatherPayloads(const CollectiveCall& call, const MemberInputs& parts) {
  const uint32_t members = call.group->local_size(), self = call.group->local_index;
  const bool all_to_all = call.collective == Collective::kAlltoall;
  const size_t bytes = all_to_all ? call.bytes() / members : call.bytes();
  const size_t skipped = all_to_all ? self * bytes : 0;
  auto* output = static_cast<std::byte*>(call.output);
  auto take = [&](uint32_t member, const void* input) {
    const std::byte* from = static_cast<const std::byte*>(input) + skipped;
    if (from != output + member * bytes) std::memmove(output + member * bytes, from, bytes);
  };
  take(self, call.input);
  for (uint32_t m = 0; m < members; ++m) {
    if (m != self) take(m, parts.descriptors[m].payload.data());
  }
}

// The own rows of all inputs. The output may overlap the own input.
void ReduceOwnRows(const CollectiveCall& call, const MemberInputs& parts) {
  const uint32_t members = call.group->local_size(), self = call.group->local_index;
  const RowRange rows = RowsOf(self, call.rows, members);
  const size_t skipped = static_cast<size_t>(rows.first) * call.row_bytes();
  const size_t count = static_cast<size_t>(rows.count) * call.row_count;
  InputList inputs(members);
  for (uint32_t m = 0; m < members; ++m) {
    const void* input = m == self ? call.input : parts.descriptors[m].payload.data();
    inputs.Add(static_cast<const std::byte*>(input) + skipped);
  }
  alignas(kCacheLine) std::byte beside[kLargestPayload];
  const bool overlaps = OutputOverlapsInput(call, count * SizeOf(call.dtype));
  void* output = overlaps ? beside : call.output;
  ReduceRange(SpecOf(call, DivisorOf(call.op, members, members)), inputs.all(), {&output, 1}, 0,
              count);
  if (overlaps) std::memcpy(call.output, beside, count * SizeOf(call.dtype));
}

void FinishExchange(const CollectiveCall& call, const MemberInputs& parts) {
  if (call.collective == Collective::kBarrier || call.count == 0) return;
  if (call.collective == Collective::kAllreduce) return ReducePayloads(call, parts);
  if (call.collective == Collective::kReducescatter) return ReduceOwnRows(call, parts);
  if (call.collective != Collective::kBroadcast) return GatherPayloads(call, parts);
  const void* source = call.root == call.group->local_index
                           ? call.input
                           : parts.descriptors[call.root].payload.data();
  if (source != call.output) std::memcpy(call.output, source, call.bytes());
}

ShmOp& OpOf(OpState* state) { return static_cast<ShmOp&>(*state); }

}  // namespace

uint32_t ShmBackend::ChunkKib() const {
  const uint32_t tuned = tuned_ == nullptr ? 0 : tuned_->chunk_kib.load(std::memory_order_relaxed);
  return tuned != 0 ? tuned : chunk_kib_;
}

bool ShmBackend::IsExchange(const CollectiveCall& call) const {
  switch (call.collective) {
    case Collective::kAllgather:
    case Collective::kAlltoall:
    case Collective::kReducescatter: return FitsRequest(call.bytes(), call.group->local_size());
    default: return IsStateless(call);
  }
}

Status ShmBackend::Prepare(const CollectiveCall& call, std::unique_ptr<OpState>* state,
                           BufferDescriptor* descriptor) {
  leases_.Collect();
  if (IsStateless(call)) {
    OfferPayload(call, descriptor);
    return Status::Ok();
  }
  ShmRoom room{leases_, peer_memory_, ChunkKib(), ring_from_, stream_from_};
  std::unique_ptr<ShmOp> op =
      call.collective == Collective::kAllreduce ? MakeAllreduceOp(room) : MakeGatherOp(room);
  Result<BufferDescriptor> made = op->Prepare(call);
  if (!made.ok()) return made.status();
  *descriptor = *made;
  *state = std::move(op);
  return Status::Ok();
}

void ShmBackend::WorkAhead(const CollectiveCall& call, OpState* state) {
  if (state != nullptr) OpOf(state).WorkAhead(call);
}

Result<bool> ShmBackend::Start(const CollectiveCall& call, OpState* state,
                               const MemberInputs& parts) {
  if (state != nullptr) {
    Result<bool> done = OpOf(state).Start(call, parts);
    WakePeersFor(OpOf(state));
    return done;
  }
  NoteAlgorithm(call.activities, TraceAlgorithm::kAnnouncement);
  FinishExchange(call, parts);
  return true;
}

Result<bool> ShmBackend::Advance(const CollectiveCall& call, OpState* state) {
  Result<bool> done = OpOf(state).Advance(call);
  WakePeersFor(OpOf(state));
  return done;
}

void ShmBackend::WakePeersFor(ShmOp& op) {
  if (op.PopPublished() && peers_ != nullptr) peers_->WakeAll();
}

bool ShmBackend::Needs(const CollectiveCall& call, const OpState* state, uint32_t peer) const {
  const std::vector<uint32_t>& local = call.group->local;
  const auto found = std::lower_bound(local.begin(), local.end(), peer);
  if (state == nullptr || found == local.end() || *found != peer) return false;
  return static_cast<const ShmOp*>(state)->Needs(static_cast<uint32_t>(found - local.begin()));
}

std::string ShmBackend::Awaits(const CollectiveCall& call, const OpState* state) const {
  return AwaitedParts(AwaitedBy(call, state).ranks);
}

AwaitedRanks ShmBackend::AwaitedBy(const CollectiveCall& call, const OpState* state) const {
  if (state == nullptr) return {{}, true};
  const Group& group = *call.group;
  const auto& op = static_cast<const ShmOp&>(*state);
  std::vector<uint32_t> awaited;
  for (uint32_t m = 0; m < group.local_size(); ++m) {
    if (op.AwaitsPartOf(m)) awaited.push_back(group.ranks[group.local_to_group[m]]);
  }
  return {std::move(awaited), true};
}

void ShmBackend::Abandon(std::unique_ptr<OpState> state, bool peers_may_work) {
  if (state != nullptr && !peers_may_work) OpOf(state.get()).Reclaim();
}

}  // namespace hvd
