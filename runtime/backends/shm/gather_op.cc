// Allgather, alltoall, broadcast and reducescatter: each member lends its input, or sends it as a
// GatherStream, and copies what it needs from the others' inputs.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/backends/shm/gather_plan.h"
#include "runtime/backends/shm/gather_stream.h"
#include "runtime/backends/shm/shm_op.h"
#include "runtime/device/host_copy.h"

namespace hvd {
namespace {

// From this size on, registered input is read in place, and its owner waits for the readers. Below,
// a copy is cheaper than waiting. The root of a broadcast has nothing else to do, so it always
// waits.
constexpr size_t kReadInPlaceFrom = 32 << 10;
// The same for a broadcast whose root could send a stream: memory that a reader has shared is slow
// to overwrite, and larger inputs do not fit the cache anyway.
constexpr size_t kReadInPlaceInsteadOfStreamFrom = 2 << 20;
// The own piece is copied in steps of this size while waiting for others.
constexpr size_t kOwnStep = 32 << 10;

class GatherOp final : public ShmOp {
 public:
  explicit GatherOp(ShmRoom room) : room_(room) {}

  Result<BufferDescriptor> Prepare(const CollectiveCall& call) override;
  void WorkAhead(const CollectiveCall& call) override;
  Result<bool> Start(const CollectiveCall& call, const MemberInputs& parts) override;
  Result<bool> Advance(const CollectiveCall& call) override;
  bool PopPublished() override {
    return std::exchange(published_, false) || (posts_ && posts_->PopPublished());
  }
  bool Needs(uint32_t member) const override;
  bool AwaitsPartOf(uint32_t member) const override { return Needs(member); }
  void Reclaim() override { room_.leases.Reclaim(&lease_); }

 private:
  // Where a member's input is. A payload is gone after Start.
  struct Source {
    const std::byte* data = nullptr;
    bool payload = false;
    ReleaseFlag* flag = nullptr;  // our index in that member's lease, if it lent something
    std::optional<StreamReader> stream;
    std::byte* target = nullptr;  // of its piece, in our output
  };

  Status Lend(const CollectiveCall& call, BufferDescriptor* descriptor);
  Status OpenStream(const CollectiveCall& call, BufferDescriptor* descriptor);
  Status Attach(const CollectiveCall& call, const MemberInputs& parts);
  Status AttachLease(const CollectiveCall& call, uint32_t member, const LeaseDescriptor& descriptor,
                     const Extent& extent);
  Status FindOutput(const CollectiveCall& call);
  void BeginCopy(const CollectiveCall& call);
  void BeginReduce(const CollectiveCall& call);
  void CopyOwn(size_t until);
  void CopyWhole(bool payloads);
  bool CopyOne();
  bool Reduce(const CollectiveCall& call);
  bool Step(const CollectiveCall& call);
  void Pull();
  void Release(Source& source);
  void Leave();
  bool taken() const;
  bool WaitsForReaders() const {
    return lease_.control != nullptr && lease_.staging == nullptr && !posts_;
  }

  ShmRoom room_;
  Lease lease_;
  uint32_t self_ = 0;
  GatherPlan plan_;
  std::vector<Source> sources_;
  std::byte* output_ = nullptr;
  std::optional<StreamSource> posts_;  // the own input is sent as a stream
  bool reduces_ = false;
  bool streamed_ = false;  // some input arrives as a stream
  bool pulled_ = false;    // inputs that are available as a whole have been copied
  bool published_ = false;
  Piece own_;                                 // of a copy, not yet copied; 0 bytes: none
  size_t own_done_ = 0;                       // bytes of it
  size_t reduced_ = 0;                        // bytes of the output
  std::vector<std::vector<std::byte>> kept_;  // rows that a reducescatter needs after Start
  std::vector<const void*> inputs_;           // of the current step
};

Result<BufferDescriptor> GatherOp::Prepare(const CollectiveCall& call) {
  const Group& group = *call.group;
  self_ = group.local_index;
  reduces_ = call.collective == Collective::kReducescatter;
  BufferDescriptor descriptor;
  const bool sends = call.collective != Collective::kBroadcast || call.root == self_;
  if (!sends || group.local_size() == 1 || call.bytes() == 0) return descriptor;
  if (FitsRequest(call.bytes(), group.local_size())) {
    descriptor.payload = {static_cast<const std::byte*>(call.input), call.bytes()};
    return descriptor;
  }
  if (!Lend(call, &descriptor).ok()) {
    Reclaim();
    posts_.reset();
    descriptor = {};
    descriptor.payload = {static_cast<const std::byte*>(call.input), call.bytes()};
    WarnWithoutSharedMemory(call.bytes());
  }
  return descriptor;
}

Status GatherOp::Lend(const CollectiveCall& call, BufferDescriptor* descriptor) {
  const bool broadcast = call.collective == Collective::kBroadcast;
  const bool pays = room_.stream_from ? call.bytes() >= *room_.stream_from
                                      : StreamCut::Pays(call.collective, call.bytes());
  const bool may_stream = call.caller_waits && pays && !StreamCut::TooManyMembers(call);
  const size_t from = may_stream && broadcast ? kReadInPlaceInsteadOfStreamFrom : kReadInPlaceFrom;
  const bool in_place = broadcast ? !may_stream || call.bytes() >= from
                                  : call.bytes() >= from && !OutputOverlapsInput(call, 1);
  std::optional<Location> data;
  if (in_place) data = room_.leases.heap().Locate(call.input, call.bytes());
  const bool staged = !data;
  if (staged && may_stream) return OpenStream(call, descriptor);
  const uint32_t members = call.group->local_size();
  Result<Lease> lease = room_.leases.Open(members, ReleaseFlagBytes(members));
  if (!lease.ok()) return lease.status();
  lease_ = *lease;
  if (staged) {
    const NotedActivity copying(call.activities, TraceActivity::kCopyIn, call.bytes());
    Result<Location> copy = room_.leases.Stage(&lease_, call.input, call.bytes());
    if (!copy.ok()) return copy.status();
    data = *copy;
  }
  LeaseDescriptor{*data, lease_.control_at, staged}.WriteTo(descriptor);
  return Status::Ok();
}

// The first chunk is sent at once, so that readers have work as soon as they know of it.
Status GatherOp::OpenStream(const CollectiveCall& call, BufferDescriptor* descriptor) {
  const uint32_t members = call.group->local_size();
  Result<Lease> lease =
      room_.leases.Open(members, StreamPlace::BytesFor(members), StreamPlace::ZeroedFor(members));
  if (!lease.ok()) return lease.status();
  lease_ = *lease;
  const NotedActivity copying(call.activities, TraceActivity::kCopyIn, call.bytes());
  Result<Location> copy = room_.leases.Reserve(&lease_, call.bytes());
  if (!copy.ok()) return copy.status();
  Extent extent{call.rows, {}};
  if (call.splits != nullptr) extent.splits = {call.splits, members};
  const StreamPlace place(lease_.control, members, static_cast<std::byte*>(lease_.staging));
  posts_.emplace(StreamCut(call, self_, extent), place, call.input, members, self_);
  posts_->Post();
  posts_->PopPublished();  // the offer itself wakes the others
  LeaseDescriptor{*copy, lease_.control_at, /*staged=*/true, /*chunk_kib=*/0, /*ring=*/true}
      .WriteTo(descriptor);
  return Status::Ok();
}

void GatherOp::WorkAhead(const CollectiveCall&) {
  if (!posts_) return;
  while (posts_->Post()) {
  }
  posts_->PostAside();
}

Result<bool> GatherOp::Start(const CollectiveCall& call, const MemberInputs& parts) {
  plan_ = PlanGather(call, parts.extents);
  Status attached = Attach(call, parts);
  if (attached.ok()) attached = FindOutput(call);
  if (!attached.ok()) {
    if (posts_) posts_->PostAll();
    Leave();  // the others continue without us
    return attached;
  }
  const bool lent = lease_.control != nullptr;
  const bool others_lent = std::any_of(sources_.begin(), sources_.end(),
                                       [](const Source& source) { return source.flag != nullptr; });
  reduces_ ? BeginReduce(call) : BeginCopy(call);
  if (lent)
    NoteAlgorithm(call.activities,
                  lease_.staging != nullptr ? TraceAlgorithm::kCopied : TraceAlgorithm::kInPlace);
  if (lent || others_lent) return false;
  while (Step(call)) {
  }
  return true;
}

Status GatherOp::Attach(const CollectiveCall& call, const MemberInputs& parts) {
  sources_.resize(call.group->local_size());
  sources_[self_].data = lease_.staging != nullptr && !posts_
                             ? static_cast<const std::byte*>(lease_.staging)
                             : static_cast<const std::byte*>(call.input);
  Status first_failure;
  for (uint32_t m = 0; m < sources_.size(); ++m) {
    if (m == self_) continue;
    const BufferDescriptor& descriptor = parts.descriptors[m];
    if (!descriptor.payload.empty()) {
      sources_[m].data = descriptor.payload.data();
      sources_[m].payload = true;
      continue;
    }
    const LeaseDescriptor lease = LeaseDescriptor::In(descriptor);
    if (lease.control.segment == 0) continue;  // it contributes nothing
    Status attached =
        AttachLease(call, m, lease, parts.extents.empty() ? Extent{} : parts.extents[m]);
    if (first_failure.ok()) first_failure = attached;
  }
  return first_failure;
}

Status GatherOp::AttachLease(const CollectiveCall& call, uint32_t member,
                             const LeaseDescriptor& descriptor, const Extent& extent) {
  const uint32_t members = call.group->local_size();
  Result<std::byte*> control =
      room_.peer_memory.Resolve(descriptor.control, descriptor.ring ? StreamPlace::BytesFor(members)
                                                                    : ReleaseFlagBytes(members));
  if (!control.ok()) return control.status();
  Source& source = sources_[member];
  source.flag = ReleaseFlagOf(*control, self_);
  const bool may_differ =
      call.collective == Collective::kAllgather || call.collective == Collective::kAlltoall;
  const size_t bytes =
      may_differ ? static_cast<size_t>(extent.rows) * call.row_bytes() : call.bytes();
  Result<std::byte*> data = room_.peer_memory.Resolve(descriptor.data, bytes);
  if (!data.ok()) return data.status();
  source.data = *data;
  if (descriptor.ring) {
    source.stream.emplace(StreamCut(call, member, extent), StreamPlace(*control, members, *data),
                          self_);
    streamed_ = true;
  }
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

// ---- allgather, alltoall, broadcast

// The own piece is copied first if the output is in the input, and from then on the input may be
// overwritten: the others have theirs in a payload, a copy or a stream.
void GatherOp::BeginCopy(const CollectiveCall& call) {
  for (const Piece& piece : plan_.pieces) {
    sources_[piece.from].target = output_ + piece.target;
    if (piece.from == self_) own_ = piece;
  }
  const std::byte* own = sources_[self_].data + own_.source;
  const bool in_place = own_.bytes != 0 && own == output_ + own_.target;
  if (posts_) {
    posts_->ExpectReaders();
    const bool keeps_input = in_place && own_.bytes == call.bytes();
    if (!keeps_input && OutputOverlapsInput(call, plan_.bytes)) posts_->PostAll();
  }
  if (in_place) own_done_ = own_.bytes;
  if (!posts_ || posts_->done()) CopyOwn(own_.bytes);
  CopyWhole(/*payloads=*/true);
}

void GatherOp::CopyOwn(size_t until) {
  until = std::min(until, own_.bytes);
  if (until <= own_done_) return;
  MoveRange(output_ + own_.target + own_done_, sources_[self_].data + own_.source + own_done_,
            until - own_done_);
  own_done_ = until;
}

// From the payloads, or from the inputs in place.
void GatherOp::CopyWhole(bool payloads) {
  for (const Piece& piece : plan_.pieces) {
    Source& source = sources_[piece.from];
    if (piece.from == self_ || source.stream || source.payload != payloads) continue;
    const std::byte* from = source.data + piece.source;
    if (piece.bytes != 0 && from != source.target) CopyRange(source.target, from, piece.bytes);
  }
}

// One chunk of each stream that has one available.
bool GatherOp::CopyOne() {
  bool moved = false;
  for (Source& source : sources_) {
    if (!source.stream || !source.stream->ready()) continue;
    const std::span<const std::byte> chunk = source.stream->Next();
    CopyRange(source.target + source.stream->taken_bytes(), chunk.data(), chunk.size());
    source.stream->Pop();
    published_ = moved = true;
  }
  return moved;
}

// ---- reducescatter

void GatherOp::BeginReduce(const CollectiveCall& call) {
  const bool overlaps = OutputOverlapsInput(call, plan_.bytes);
  if (posts_) {
    posts_->ExpectReaders();
    if (overlaps) posts_->PostAll();
  }
  if (plan_.bytes == 0) return;
  const size_t skipped = plan_.reduced.first * SizeOf(call.dtype);
  bool payloads = false;
  for (uint32_t m = 0; m < sources_.size(); ++m) {
    Source& source = sources_[m];
    if (source.stream) continue;
    source.data += skipped;
    payloads = payloads || source.payload;
    const bool overwritten =
        m == self_ && overlaps && source.data != output_ && (lease_.staging == nullptr || posts_);
    if (overwritten || (source.payload && streamed_))
      source.data = kept_.emplace_back(source.data, source.data + plan_.bytes).data();
  }
  if (payloads && !streamed_) Reduce(call);  // they are gone after Start
}

// The next step of all inputs, as far as all have it.
bool GatherOp::Reduce(const CollectiveCall& call) {
  if (reduced_ == plan_.bytes) return false;
  size_t bytes = plan_.bytes - reduced_;
  inputs_.clear();
  for (Source& source : sources_) {
    if (!source.stream) {
      inputs_.push_back(source.data + reduced_);
      continue;
    }
    if (!source.stream->ready()) return false;
    const std::span<const std::byte> chunk = source.stream->Next();  // all are cut alike
    inputs_.push_back(chunk.data());
    bytes = chunk.size();
  }
  void* output = output_ + reduced_;
  const auto members = static_cast<uint32_t>(inputs_.size());
  ReduceRange(SpecOf(call, DivisorOf(call.op, members, members)), inputs_, {&output, 1}, 0,
              bytes / SizeOf(call.dtype));
  reduced_ += bytes;
  for (Source& source : sources_) {
    if (!source.stream) continue;
    source.stream->Pop();
    published_ = true;
  }
  return true;
}

// ---- from Start to the end

// Does a little of everything that needs no waiting; false if there was nothing to do.
bool GatherOp::Step(const CollectiveCall& call) {
  bool moved = posts_ && posts_->Post();
  // While it is in the cache.
  if (moved && own_.bytes == call.bytes()) CopyOwn(posts_->posted_bytes());
  moved = (reduces_ ? Reduce(call) : CopyOne()) || moved;
  if (moved || own_done_ == own_.bytes) return moved;
  CopyOwn(own_done_ + kOwnStep);
  return true;
}

// The inputs that are available as a whole, whose owners may wait for us.
void GatherOp::Pull() {
  pulled_ = true;
  if (reduces_) return;
  CopyWhole(/*payloads=*/false);
  for (Source& source : sources_) {
    if (!source.stream) Release(source);
  }
}

Result<bool> GatherOp::Advance(const CollectiveCall& call) {
  if (!pulled_) Pull();
  while (Step(call)) {
  }
  if (posts_) posts_->PostAside();
  if (taken()) Leave();
  if (!taken() || (posts_ && !posts_->done())) return false;
  if (WaitsForReaders() && !lease_.ReleasedByAllBut(self_)) return false;
  if (posts_ && !posts_->went_aside()) room_.leases.FreeCopy(&lease_);
  room_.leases.ReclaimWhenReleased(&lease_, self_);
  return true;
}

// Everything that this member reads from the others has been read.
bool GatherOp::taken() const {
  const auto is_taken = [](const Source& source) {
    return !source.stream || source.stream->done();
  };
  return (!reduces_ || reduced_ == plan_.bytes) &&
         std::all_of(sources_.begin(), sources_.end(), is_taken);
}

bool GatherOp::Needs(uint32_t member) const {
  if (member == self_) return false;
  if (WaitsForReaders() && !lease_.ReleasedBy(member)) return true;
  return member < sources_.size() && sources_[member].stream && sources_[member].stream->lacks();
}

// Once: afterwards its owner may reuse the lease.
void GatherOp::Release(Source& source) {
  if (source.flag == nullptr) return;
  std::exchange(source.flag, nullptr)->store(1, std::memory_order_release);
  published_ =
      published_ || streamed_;  // otherwise the end of this operation, which comes now, wakes them
}

void GatherOp::Leave() {
  for (Source& source : sources_) Release(source);
}

}  // namespace

std::unique_ptr<ShmOp> MakeGatherOp(ShmRoom room) { return std::make_unique<GatherOp>(room); }

}  // namespace hvd
