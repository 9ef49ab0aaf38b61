// Allgather, alltoall, broadcast and reducescatter: each member lends its input, and takes what it
// needs out of the others'.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/backends/shm/gather_plan.h"
#include "runtime/backends/shm/shm_op.h"

namespace hvd {
namespace {

// From this size on, registered input is read where it is, and its owner waits for the readers.
// Below, a copy is cheaper than waiting. The root of a broadcast has nothing else to do, so it
// always waits.
constexpr size_t kReadInPlaceFrom = 256 << 10;

class GatherOp final : public ShmOp {
 public:
  explicit GatherOp(ShmRoom room) : room_(room) {}

  Result<BufferDescriptor> Prepare(const CollectiveCall& call) override;
  Result<bool> Start(const CollectiveCall& call, const MemberInputs& parts) override;
  Result<bool> Advance(const CollectiveCall& call) override;
  bool TakeNews() override { return false; }
  bool Needs(uint32_t member) const override {
    return WaitsForReaders() && member != self_ && !lease_.ReleasedBy(member);
  }
  bool AwaitsPartOf(uint32_t member) const override { return Needs(member); }
  void TakeBack() override { room_.leases.TakeBack(&lease_); }

 private:
  Status Lend(const CollectiveCall& call, BufferDescriptor* descriptor);
  Status Attach(const CollectiveCall& call, const MemberInputs& parts);
  Status AttachLease(const CollectiveCall& call, uint32_t member, const LeaseDescriptor& descriptor,
                     size_t bytes);
  Status FindOutput(const CollectiveCall& call);
  void Copy(bool payloads);
  void Reduce(const CollectiveCall& call);
  void Gather(const CollectiveCall& call);
  void Leave();
  bool AnyPayload() const;
  bool WaitsForReaders() const { return lease_.control != nullptr && lease_.staging == nullptr; }

  // Where a member's input is. A payload is gone after Start.
  struct Source {
    const std::byte* data = nullptr;
    bool payload = false;
    ReleaseFlag* flag = nullptr;  // ours in that member's lease, if it lent something
  };

  ShmRoom room_;
  Lease lease_;
  uint32_t self_ = 0;
  GatherPlan plan_;
  std::vector<Source> sources_;
  std::byte* output_ = nullptr;
  bool pulled_ = false;
};

Result<BufferDescriptor> GatherOp::Prepare(const CollectiveCall& call) {
  const Group& group = *call.group;
  self_ = group.local_index;
  BufferDescriptor descriptor;
  const bool sends = call.collective != Collective::kBroadcast || call.root == self_;
  if (!sends || group.local_size() == 1 || call.bytes() == 0) return descriptor;
  if (FitsRequest(call.bytes(), group.local_size())) {
    descriptor.payload = {static_cast<const std::byte*>(call.input), call.bytes()};
    return descriptor;
  }
  if (!Lend(call, &descriptor).ok()) {
    TakeBack();
    descriptor = {};
    descriptor.payload = {static_cast<const std::byte*>(call.input), call.bytes()};
    WarnWithoutSharedMemory(call.bytes());
  }
  return descriptor;
}

Status GatherOp::Lend(const CollectiveCall& call, BufferDescriptor* descriptor) {
  const uint32_t members = call.group->local_size();
  Result<Lease> lease = room_.leases.Open(members, ReleaseFlagBytes(members));
  if (!lease.ok()) return lease.status();
  lease_ = *lease;
  const bool in_place = call.collective == Collective::kBroadcast ||
                        (call.bytes() >= kReadInPlaceFrom && !OutputOverlapsInput(call, 1));
  std::optional<Location> data;
  if (in_place) data = room_.leases.heap().Locate(call.input, call.bytes());
  const bool staged = !data;
  if (staged) {
    const NotedActivity copying(call.activities, TraceActivity::kCopyIn, call.bytes());
    Result<Location> copy = room_.leases.Stage(&lease_, call.input, call.bytes());
    if (!copy.ok()) return copy.status();
    data = *copy;
  }
  LeaseDescriptor{*data, lease_.control_at, staged}.WriteTo(descriptor);
  return Status::Ok();
}

Result<bool> GatherOp::Start(const CollectiveCall& call, const MemberInputs& parts) {
  plan_ = PlanGather(call, parts.extents);
  Status attached = Attach(call, parts);
  if (attached.ok()) attached = FindOutput(call);
  if (!attached.ok()) {
    Leave();  // the others go on without us
    return attached;
  }
  if (call.collective != Collective::kReducescatter)
    Copy(/*payloads=*/true);
  else if (AnyPayload())
    Gather(call);
  const bool lent = lease_.control != nullptr;
  if (lent)
    NoteWay(call.activities, lease_.staging != nullptr ? TraceWay::kCopied : TraceWay::kInPlace);
  const bool others_lent = std::any_of(sources_.begin(), sources_.end(),
                                       [](const Source& source) { return source.flag != nullptr; });
  if (lent || others_lent) return false;
  if (!pulled_) Gather(call);
  return true;
}

Status GatherOp::Attach(const CollectiveCall& call, const MemberInputs& parts) {
  sources_.resize(call.group->local_size());
  sources_[self_].data = lease_.staging != nullptr ? static_cast<const std::byte*>(lease_.staging)
                                                   : static_cast<const std::byte*>(call.input);
  Status first_failure;
  for (uint32_t m = 0; m < sources_.size(); ++m) {
    if (m == self_) continue;
    const BufferDescriptor& descriptor = parts.descriptors[m];
    if (!descriptor.payload.empty()) {
      sources_[m] = {descriptor.payload.data(), true, nullptr};
      continue;
    }
    const LeaseDescriptor lease = LeaseDescriptor::In(descriptor);
    if (lease.control.segment == 0) continue;  // it gives nothing
    const size_t bytes =
        call.collective == Collective::kAllgather || call.collective == Collective::kAlltoall
            ? static_cast<size_t>(parts.extents[m].rows) * call.row_bytes()
            : call.bytes();
    Status attached = AttachLease(call, m, lease, bytes);
    if (first_failure.ok()) first_failure = attached;
  }
  return first_failure;
}

Status GatherOp::AttachLease(const CollectiveCall& call, uint32_t member,
                             const LeaseDescriptor& descriptor, size_t bytes) {
  Result<std::byte*> control =
      room_.peer_memory.Resolve(descriptor.control, ReleaseFlagBytes(call.group->local_size()));
  if (!control.ok()) return control.status();
  sources_[member].flag = reinterpret_cast<ReleaseFlag*>(*control) + self_;
  Result<std::byte*> data = room_.peer_memory.Resolve(descriptor.data, bytes);
  if (!data.ok()) return data.status();
  sources_[member].data = *data;
  return Status::Ok();
}

Status GatherOp::FindOutput(const CollectiveCall& call) {
  if (call.result != nullptr) {
    call.result->rows = plan_.rows;
    call.result->received_splits = std::move(plan_.received_splits);
  }
  output_ = static_cast<std::byte*>(call.output);
  if (output_ != nullptr || plan_.bytes == 0 || call.result == nullptr) return Status::Ok();
  Status why;
  call.result->made_output = room_.leases.heap().AllocateAnywhere(plan_.bytes, &why);
  output_ = static_cast<std::byte*>(call.result->made_output);
  return output_ != nullptr ? Status::Ok() : why;
}

// The own piece goes first, and from then on the input may be overwritten: the others have theirs
// in a payload or a copy.
void GatherOp::Copy(bool payloads) {
  auto copy = [this](const Piece& piece) {
    const std::byte* from = sources_[piece.from].data + piece.source;
    if (piece.bytes != 0 && from != output_ + piece.target) {
      std::memmove(output_ + piece.target, from, piece.bytes);
    }
  };
  for (const Piece& piece : plan_.pieces) {
    if (piece.from == self_ && payloads) copy(piece);
  }
  for (const Piece& piece : plan_.pieces) {
    if (piece.from != self_ && sources_[piece.from].payload == payloads) copy(piece);
  }
}

void GatherOp::Reduce(const CollectiveCall& call) {
  if (plan_.reduced.count == 0) return;
  const size_t skipped = plan_.reduced.first * SizeOf(call.dtype);
  std::vector<std::byte> own;
  std::vector<const void*> inputs;
  for (const Source& source : sources_) inputs.push_back(source.data + skipped);
  if (skipped != 0 && lease_.staging == nullptr && OutputOverlapsInput(call, plan_.bytes)) {
    const auto* rows = static_cast<const std::byte*>(call.input) + skipped;
    own.assign(rows, rows + plan_.bytes);
    inputs[self_] = own.data();
  }
  void* output = output_;
  const auto members = static_cast<uint32_t>(inputs.size());
  ReduceRange(SpecOf(call, DivisorOf(call.op, members, members)), inputs, {&output, 1}, 0,
              plan_.reduced.count);
}

Result<bool> GatherOp::Advance(const CollectiveCall& call) {
  if (!pulled_) Gather(call);
  if (WaitsForReaders() && !lease_.ReleasedByAllBut(self_)) return false;
  room_.leases.TakeBackWhenReleased(&lease_, self_);
  return true;
}

void GatherOp::Gather(const CollectiveCall& call) {
  if (call.collective == Collective::kReducescatter)
    Reduce(call);
  else
    Copy(/*payloads=*/false);
  Leave();
  pulled_ = true;
}

bool GatherOp::AnyPayload() const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [](const Source& source) { return source.payload; });
}

void GatherOp::Leave() {
  for (Source& source : sources_) {
    if (source.flag != nullptr) source.flag->store(1, std::memory_order_release);
  }
}

}  // namespace

std::unique_ptr<ShmOp> MakeGatherOp(ShmRoom room) { return std::make_unique<GatherOp>(room); }

}  // namespace hvd
