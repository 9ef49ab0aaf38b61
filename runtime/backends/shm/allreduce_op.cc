// A large allreduce: private buffers of waiting members go through a StagingRing; anything else is
// combined in place, in chunks that any waiting member claims. Adasum measures first, then
// combines.
#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/backends/shm/chunking.h"
#include "runtime/backends/shm/gather_plan.h"
#include "runtime/backends/shm/shm_op.h"
#include "runtime/backends/shm/staging_ring.h"
#include "runtime/device/adasum.h"
#include "runtime/device/host_copy.h"

namespace hvd {
namespace {

// How many chunks each member has claimed and finished.
struct Progress {
  std::atomic<uint32_t> claimed;  // of this lane, by anybody
  // Of any lane, by the participant of this number; written only by it.
  std::atomic<uint32_t> done;
  std::atomic<uint32_t> at_work;  // 1: it may have claimed a chunk that is not done
};
struct alignas(kCacheLine) Lane {
  Progress combine;
  Progress measure;  // Adasum
};

// Adasum keeps the dot products of each chunk, so there are few: they grow with the square of the
// participants.
constexpr uint32_t kMostMeasuredLanes = 16;

constexpr size_t MeasuredChunks(uint32_t participants) {
  return std::min(participants, kMostMeasuredLanes) * Chunking::kChunksPerSlice;
}

// The notice of a participant, beside its words of the ring.
struct alignas(kCacheLine) Notice {
  std::atomic<uint32_t> copied;  // 1: its late copy is complete; written only by it
};

// A control block: release flags, own notice, words of the ring; of the first participant, a
// lane per participant and dot products per measured chunk; then the slots of the ring, if any.
struct Layout {
  Layout(uint32_t members, bool adasum)
      : notice(ReleaseFlagBytes(members)),
        ring(notice + sizeof(Notice)),
        lanes(ring + sizeof(RingWords)),
        products(lanes + sizeof(Lane) * members),
        slots(RoundUp(
            products +
                (adasum ? MeasuredChunks(members) * DotProductCount(members) * sizeof(double) : 0),
            kCacheLine)) {}
  size_t BytesWith(bool ring) const { return slots + (ring ? StagingRing::kWindowBytes : 0); }
  size_t notice, ring, lanes, products, slots;
};

struct Participant {
  uint32_t member = 0;
  std::byte* data = nullptr;     // its part, in this process
  std::byte* control = nullptr;  // of its lease
  bool staged = false;           // its part is a copy; the result goes to its own memory
  bool sent = false;             // its part is a payload, because it found no shared memory
  bool late = false;             // its part may not be copied yet
};

bool IsCopied(const Participant& participant, uint32_t members) {
  if (!participant.late) return true;
  const Layout layout(members, /*adasum=*/false);
  const auto* notice = reinterpret_cast<const Notice*>(participant.control + layout.notice);
  return notice->copied.load(std::memory_order_acquire) != 0;
}

bool AllCopied(std::span<const Participant> participants, uint32_t members) {
  return std::ranges::all_of(participants, [members](const Participant& participant) {
    return IsCopied(participant, members);
  });
}

const Participant* ParticipantOf(std::span<const Participant> participants, uint32_t member) {
  for (const Participant& participant : participants) {
    if (participant.member == member) return &participant;
  }
  return nullptr;
}

// Each continues chunk by chunk, so all must be there.
bool MayUseRing(const CollectiveCall& call, size_t ring_from) {
  return call.caller_waits && call.bytes() >= ring_from && call.op != ReduceOp::kAdasum &&
         (call.output == call.input || !OutputOverlapsInput(call, call.bytes()));
}

// All ranks compute the same result: they have the same descriptors.
bool OthersHaveRings(const CollectiveCall& call, const MemberInputs& parts) {
  uint32_t others = 0;
  for (uint32_t m = 0; m < call.group->local_size(); ++m) {
    if (m == call.group->local_index) continue;
    if (!parts.joined.empty() && parts.joined[m] != 0) continue;
    ++others;
    const BufferDescriptor& descriptor = parts.descriptors[m];
    if (!descriptor.payload.empty() || !LeaseDescriptor::In(descriptor).ring) return false;
  }
  return others > 0;
}

class AllreduceOp final : public ShmOp {
 public:
  explicit AllreduceOp(ShmRoom room) : room_(room) {}

  Result<BufferDescriptor> Prepare(const CollectiveCall& call) override;
  void WorkAhead(const CollectiveCall& call) override {
    if (has_ring_) ring_.PostAside(call);
  }
  Result<bool> Start(const CollectiveCall& call, const MemberInputs& parts) override;
  Result<bool> Advance(const CollectiveCall& call) override;
  bool PopPublished() override { return std::exchange(published_, false) || ring_.PopPublished(); }
  bool Needs(uint32_t member) const override;
  bool AwaitsPartOf(uint32_t member) const override;
  void Reclaim() override { room_.leases.Reclaim(&lease_); }

 private:
  Status Lend(const CollectiveCall& call, BufferDescriptor* descriptor);
  Status LendRing(const CollectiveCall& call, BufferDescriptor* descriptor);
  void JoinRing(const CollectiveCall& call);
  void CopyLate(const CollectiveCall& call);
  void KeepPayloads(const CollectiveCall& call);
  Status Attach(const CollectiveCall& call, const MemberInputs& parts);
  Status AttachLease(const CollectiveCall& call, const BufferDescriptor& descriptor,
                     Participant* participant);
  size_t LargestChunkOf(const BufferDescriptor& descriptor, uint32_t member) const;
  void FindHomes();
  void Leave();
  bool Measure(const CollectiveCall& call);
  bool Combine(const CollectiveCall& call);
  void CombineChunk(const CollectiveCall& call, uint32_t lane, ElementRange range);
  void FetchResults(const CollectiveCall& call);
  bool CombineAlone(const CollectiveCall& call);
  Result<bool> AdvanceAlone(const CollectiveCall& call);
  template <typename Do>
  bool ClaimChunks(const Chunking& chunking, uint32_t lanes, Progress Lane::*progress, Do&& work);

  // Two write directly into each other's copies, which are then free at once. More write into one
  // copy that all read: less to write, but it stays until all have left.
  bool KeepsCopy(const Participant& participant) const {
    return participant.staged && participants_.size() > 2;
  }
  // Where `of` two participants finds what the other combined; with more, where all do.
  std::byte* HomeOf(uint32_t lane, uint32_t of) const {
    return participants_.size() == 2 ? participants_[of].data : homes_[lane];
  }
  uint32_t count() const { return static_cast<uint32_t>(participants_.size()); }
  Chunking CombineChunks(const CollectiveCall& call) const {
    return {call.count, SizeOf(call.dtype), count(), largest_chunk_};
  }

  ShmRoom room_;
  Lease lease_;
  std::byte* own_data_ = nullptr;
  uint32_t members_ = 0;
  uint32_t self_ = 0;                               // member
  uint32_t me_ = 0;                                 // participant
  size_t largest_chunk_ = Chunking::kLargestChunk;  // set by the first participant
  std::vector<Participant> participants_;  // in order of rank, without those that have joined
  std::vector<const void*> inputs_;        // their inputs
  std::vector<void*> outputs_;             // parts that are outputs, and room for two more
  std::vector<std::byte*> homes_;  // by lane: where those with a copy find what others combined
  bool others_staged_ = false;
  bool staged_ = false;     // the own part is a copy
  bool has_ring_ = false;   // the own control block has slots
  bool uses_ring_ = false;  // all participants have them, and nothing else is used
  bool published_ = false;
  StagingRing ring_;
  bool lends_ = false;                       // others read our lease until they release it
  std::vector<ReleaseFlag*> release_flags_;  // ours, in the leases that we read
  std::vector<uint8_t> combined_here_;       // chunks already in our output
  Lane* lanes_ = nullptr;
  double* products_ = nullptr;
  std::vector<double> weights_;  // Adasum; empty until everything is measured
  bool alone_ = false;     // a member sent a payload, so each member combines everything itself
  bool combined_ = false;  // then: that was done
  std::vector<std::vector<std::byte>> payloads_;  // kept until all late copies are made
  std::vector<std::byte> result_;  // then: until no member reads our part, which is in the output
};

Result<BufferDescriptor> AllreduceOp::Prepare(const CollectiveCall& call) {
  self_ = call.group->local_index;
  members_ = call.group->local_size();
  BufferDescriptor descriptor;
  if (!Lend(call, &descriptor).ok()) {
    Reclaim();
    staged_ = has_ring_ = false;
    descriptor = {};
    descriptor.payload = {static_cast<const std::byte*>(call.input), call.bytes()};
    WarnWithoutSharedMemory(call.bytes());
  }
  return descriptor;
}

// Combines in the output if that is registered; otherwise in a registered copy of the input. Every
// member offers lanes, because it is not yet known which one will be the first participant.
Status AllreduceOp::Lend(const CollectiveCall& call, BufferDescriptor* descriptor) {
  const uint32_t members = call.group->local_size();
  std::optional<Location> data = room_.leases.heap().Locate(call.output, call.bytes());
  staged_ = !data;
  has_ring_ = staged_ && MayUseRing(call, room_.ring_from);
  const Layout layout(members, call.op == ReduceOp::kAdasum);
  Result<Lease> lease =
      room_.leases.Open(members, layout.BytesWith(has_ring_), /*zeroed=*/layout.slots);
  if (!lease.ok()) return lease.status();
  lease_ = *lease;
  const bool copied = staged_ || call.output != call.input;
  const NotedActivity copying(copied ? call.activities : nullptr, TraceActivity::kCopyIn,
                              call.bytes());
  if (has_ring_) return LendRing(call, descriptor);
  if (staged_) {
    Result<Location> copy = room_.leases.Stage(&lease_, call.input, call.bytes());
    if (!copy.ok()) return copy.status();
    data = *copy;
    own_data_ = static_cast<std::byte*>(lease_.staging);
  } else {
    own_data_ = static_cast<std::byte*>(call.output);
    if (copied) CopyRange(call.output, call.input, call.bytes());
  }
  LeaseDescriptor{*data, lease_.control_at, staged_, room_.chunk_kib}.WriteTo(descriptor);
  return Status::Ok();
}

// The first chunks go into the slots at once. There is also space for a whole copy, for chunks that
// find no slot, and for all if a member has no ring, which is not known yet.
Status AllreduceOp::LendRing(const CollectiveCall& call, BufferDescriptor* descriptor) {
  const Layout layout(call.group->local_size(), /*adasum=*/false);
  std::byte* slots = lease_.control + layout.slots;
  Result<Location> copy = room_.leases.Reserve(&lease_, call.bytes());
  if (!copy.ok()) return copy.status();
  own_data_ = static_cast<std::byte*>(lease_.staging);
  ring_ = StagingRing(
      call, {reinterpret_cast<RingWords*>(lease_.control + layout.ring), slots, own_data_});
  ring_.Post(call);
  ring_.PopPublished();  // the offer itself wakes the others
  LeaseDescriptor{*copy, lease_.control_at, staged_, room_.chunk_kib, /*ring=*/true}.WriteTo(
      descriptor);
  return Status::Ok();
}

Result<bool> AllreduceOp::Start(const CollectiveCall& call, const MemberInputs& parts) {
  Status attached = Attach(call, parts);
  if (!attached.ok()) {
    Leave();
    return attached;
  }
  if (uses_ring_) {
    NoteAlgorithm(call.activities, TraceAlgorithm::kCopied);
    JoinRing(call);
    return false;
  }
  if (has_ring_) CopyLate(call);
  if (alone_) {
    NoteAlgorithm(call.activities, TraceAlgorithm::kAlone);
    if (AllCopied(participants_, members_)) return CombineAlone(call);
    KeepPayloads(call);
    return false;
  }
  NoteAlgorithm(call.activities,
                participants_[me_].staged ? TraceAlgorithm::kCopied : TraceAlgorithm::kInPlace);
  FindHomes();
  const Chunking chunking = CombineChunks(call);
  combined_here_.assign(size_t{count()} * chunking.chunks_of(0), 0);
  return false;
}

void AllreduceOp::JoinRing(const CollectiveCall& call) {
  const Layout layout(call.group->local_size(), /*adasum=*/false);
  std::vector<StagingRing::Place> places;
  for (const Participant& p : participants_) {
    places.push_back(
        {reinterpret_cast<RingWords*>(p.control + layout.ring), p.control + layout.slots, p.data});
  }
  ring_.Join(std::move(places), me_, SpecOf(call, DivisorOf(call.op, call.group->size(), count())));
}

void AllreduceOp::CopyLate(const CollectiveCall& call) {
  const NotedActivity copying(call.activities, TraceActivity::kCopyIn, call.bytes());
  CopyRange(own_data_, call.input, call.bytes());
  const Layout layout(call.group->local_size(), /*adasum=*/false);
  auto* notice = reinterpret_cast<Notice*>(lease_.control + layout.notice);
  notice->copied.store(1, std::memory_order_release);
  published_ = true;
}

// They exist only during Start, and another member's copy may not be complete yet.
void AllreduceOp::KeepPayloads(const CollectiveCall& call) {
  for (uint32_t p = 0; p < count(); ++p) {
    if (!participants_[p].sent || p == me_) continue;
    const std::byte* payload = participants_[p].data;
    inputs_[p] = payloads_.emplace_back(payload, payload + call.bytes()).data();
  }
}

// Finds every participant's part in this process.
Status AllreduceOp::Attach(const CollectiveCall& call, const MemberInputs& parts) {
  uses_ring_ = has_ring_ && OthersHaveRings(call, parts);
  for (uint32_t m = 0; m < call.group->local_size(); ++m) {
    if (!parts.joined.empty() && parts.joined[m] != 0) {
      if (lease_.control != nullptr) lease_.release_flags()[m].store(1, std::memory_order_relaxed);
      continue;
    }
    if (m == self_) me_ = count();
    Participant& participant = participants_.emplace_back(Participant{.member = m});
    if (count() == 1) largest_chunk_ = LargestChunkOf(parts.descriptors[m], m);
    Status attached = AttachLease(call, parts.descriptors[m], &participant);
    if (!attached.ok()) return attached;
    alone_ = alone_ || participant.sent;
    inputs_.push_back(participant.data);
    if (!participant.staged) outputs_.push_back(participant.data);
  }
  for (const Participant& other : participants_) {
    const bool lends = other.control != nullptr && (other.member == participants_[0].member ||
                                                    KeepsCopy(other) || alone_ || uses_ring_);
    if (lends && other.member != self_)
      release_flags_.push_back(ReleaseFlagOf(other.control, self_));
  }
  if (alone_) return Status::Ok();
  const Layout layout(call.group->local_size(), call.op == ReduceOp::kAdasum);
  lanes_ = reinterpret_cast<Lane*>(participants_[0].control + layout.lanes);
  products_ = reinterpret_cast<double*>(participants_[0].control + layout.products);
  lends_ = me_ == 0 || KeepsCopy(participants_[me_]) || uses_ring_;
  return Status::Ok();
}

// All cut as the first participant chose, so ranks may have different settings.
size_t AllreduceOp::LargestChunkOf(const BufferDescriptor& descriptor, uint32_t member) const {
  if (member != self_ && !descriptor.payload.empty()) return Chunking::kLargestChunk;
  const uint32_t kib =
      member == self_ ? room_.chunk_kib : LeaseDescriptor::In(descriptor).chunk_kib;
  return kib == 0 ? Chunking::kLargestChunk : std::max(size_t{kib} << 10, Chunking::kSmallestChunk);
}

Status AllreduceOp::AttachLease(const CollectiveCall& call, const BufferDescriptor& descriptor,
                                Participant* participant) {
  if (participant->member == self_) {
    participant->sent = lease_.control == nullptr;
    participant->staged = staged_;
    participant->late = has_ring_;
    participant->data =
        participant->sent ? static_cast<std::byte*>(const_cast<void*>(call.input)) : own_data_;
    participant->control = lease_.control;
    return Status::Ok();
  }
  if (!descriptor.payload.empty()) {
    participant->sent = true;
    participant->data = const_cast<std::byte*>(descriptor.payload.data());
    return Status::Ok();
  }
  const LeaseDescriptor lease = LeaseDescriptor::In(descriptor);
  participant->staged = lease.staged;
  participant->late = lease.ring;
  const Layout layout(call.group->local_size(), call.op == ReduceOp::kAdasum);
  Result<std::byte*> control =
      room_.peer_memory.Resolve(lease.control, layout.BytesWith(lease.ring));
  if (!control.ok()) return control.status();
  participant->control = *control;
  Result<std::byte*> data = room_.peer_memory.Resolve(lease.data, call.bytes());
  if (!data.ok()) return data.status();
  participant->data = *data;
  return Status::Ok();
}

// The combined values of a lane are kept in the copy of its owner or, if that has none, of the next
// one that has one. (Not with two.)
void AllreduceOp::FindHomes() {
  for (uint32_t p = 0; p < count(); ++p) {
    others_staged_ = others_staged_ || (p != me_ && participants_[p].staged);
  }
  if (!others_staged_ && !participants_[me_].staged) return;
  homes_.assign(count(), nullptr);
  for (uint32_t lane = 0; lane < count(); ++lane) {
    uint32_t p = lane;
    while (!participants_[p].staged) p = (p + 1) % count();
    homes_[lane] = participants_[p].data;
  }
}

Result<bool> AllreduceOp::Advance(const CollectiveCall& call) {
  if (alone_) return AdvanceAlone(call);
  if (uses_ring_) {
    if (!ring_.Advance(call)) return false;
    Leave();
    if (!ring_.went_aside()) room_.leases.FreeCopy(&lease_);
    room_.leases.ReclaimWhenReleased(&lease_, self_);
    return true;
  }
  if (!AllCopied(participants_, members_)) return false;
  if (call.op == ReduceOp::kAdasum && weights_.empty() && !Measure(call)) return false;
  if (!Combine(call)) return false;
  if (participants_[me_].staged) FetchResults(call);
  Leave();
  if (!KeepsCopy(participants_[me_])) room_.leases.FreeCopy(&lease_);
  if (lends_)
    room_.leases.ReclaimWhenReleased(&lease_, self_);
  else
    Reclaim();
  return true;
}

// Claims chunks until none is left: first those of the own lane, whose data is near, then those of
// late ranks. True when all chunks are done, by any rank.
template <typename Do>
bool AllreduceOp::ClaimChunks(const Chunking& chunking, uint32_t lanes, Progress Lane::*progress,
                              Do&& work) {
  uint32_t all = 0;
  std::atomic<uint32_t>& at_work = (lanes_[me_].*progress).at_work;
  std::atomic<uint32_t>& finished = (lanes_[me_].*progress).done;
  for (uint32_t step = 0; step < lanes; ++step) {
    const uint32_t lane = (me_ + step) % lanes;
    const uint32_t chunks = chunking.chunks_of(lane);
    all += chunks;
    std::atomic<uint32_t>& claimed = (lanes_[lane].*progress).claimed;
    while (claimed.load(std::memory_order_relaxed) < chunks) {
      at_work.store(1, std::memory_order_relaxed);
      const uint32_t chunk = claimed.fetch_add(1, std::memory_order_release);  // after at_work
      if (chunk < chunks) {
        work(lane, chunk, chunking.chunk(lane, chunk));
        finished.store(finished.load(std::memory_order_relaxed) + 1, std::memory_order_release);
      }
      at_work.store(0, std::memory_order_release);
    }
  }
  uint32_t done = 0;
  for (uint32_t p = 0; p < count(); ++p) {
    done += (lanes_[p].*progress).done.load(std::memory_order_acquire);
  }
  return done == all;
}

// Any member that is there works on chunks. But the ring needs all participants, and so does a late
// copy that is still to be made; without shared memory an output waits for the members that read
// the input in it.
bool AllreduceOp::Needs(uint32_t member) const {
  const Participant* participant = ParticipantOf(participants_, member);
  if (member == self_ || participant == nullptr) return false;
  if (uses_ring_) return ring_.Needs(static_cast<uint32_t>(participant - participants_.data()));
  return !IsCopied(*participant, members_) || (!result_.empty() && !lease_.ReleasedBy(member));
}

bool AllreduceOp::AwaitsPartOf(uint32_t member) const {
  const Participant* participant = ParticipantOf(participants_, member);
  if (member == self_ || participant == nullptr) return false;
  const auto p = static_cast<uint32_t>(participant - participants_.data());
  if (uses_ring_) return ring_.Awaits(p);
  if (lanes_ == nullptr || !AllCopied(participants_, members_)) return Needs(member);
  return (lanes_[p].measure.at_work.load(std::memory_order_relaxed) |
          lanes_[p].combine.at_work.load(std::memory_order_relaxed)) != 0;
}

// The dot products of each chunk, by whichever member claims it; then every member adds them up in
// the same order.
bool AllreduceOp::Measure(const CollectiveCall& call) {
  const uint32_t lanes = std::min(count(), kMostMeasuredLanes);
  const size_t triangle = DotProductCount(count());
  const Chunking chunking(call.count, SizeOf(call.dtype), lanes, /*largest_chunk=*/SIZE_MAX / 2);
  auto slot = [&](uint32_t lane, uint32_t chunk) {
    return std::span(products_ + (lane * Chunking::kChunksPerSlice + chunk) * triangle, triangle);
  };
  auto measure = [&](uint32_t lane, uint32_t chunk, ElementRange range) {
    AddDotProducts(call.dtype, inputs_, range.first, range.count, slot(lane, chunk));
  };
  if (!ClaimChunks(chunking, lanes, &Lane::measure, measure)) return false;
  std::vector<double> total(triangle, 0.0);
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    for (uint32_t chunk = 0; chunk < chunking.chunks_of(lane); ++chunk) {
      std::span<const double> part = slot(lane, chunk);
      for (size_t i = 0; i < triangle; ++i) total[i] += part[i];
    }
  }
  weights_ = ScaledAdasumWeights(call, total, count());
  return true;
}

bool AllreduceOp::Combine(const CollectiveCall& call) {
  const Chunking chunking = CombineChunks(call);
  auto combine = [&](uint32_t lane, uint32_t chunk, ElementRange range) {
    CombineChunk(call, lane, range);
    combined_here_[size_t{lane} * chunking.chunks_of(0) + chunk] = 1;
  };
  return ClaimChunks(chunking, count(), &Lane::combine, combine);
}

void AllreduceOp::CombineChunk(const CollectiveCall& call, uint32_t lane, ElementRange range) {
  const size_t shared = outputs_.size();
  if (others_staged_) outputs_.push_back(HomeOf(lane, /*of=*/1 - me_));
  if (participants_[me_].staged) outputs_.push_back(call.output);
  if (call.op == ReduceOp::kAdasum) {
    WeightedSumRange(call.dtype, inputs_, weights_, outputs_, range.first, range.count);
  } else {
    const uint32_t divisor = DivisorOf(call.op, call.group->size(), count());
    ReduceRange(SpecOf(call, divisor), inputs_, outputs_, range.first, range.count);
  }
  outputs_.resize(shared);
}

void AllreduceOp::FetchResults(const CollectiveCall& call) {
  const NotedActivity copying(call.activities, TraceActivity::kCopyOut, call.bytes());
  const Chunking chunking = CombineChunks(call);
  const size_t element = SizeOf(call.dtype);
  for (uint32_t lane = 0; lane < count(); ++lane) {
    for (uint32_t chunk = 0; chunk < chunking.chunks_of(lane); ++chunk) {
      if (combined_here_[size_t{lane} * chunking.chunks_of(0) + chunk] != 0) continue;
      const ElementRange range = chunking.chunk(lane, chunk);
      CopyRange(static_cast<std::byte*>(call.output) + range.first * element,
                HomeOf(lane, /*of=*/me_) + range.first * element, range.count * element);
    }
  }
}

// Some member has no shared memory: the payloads exist only during Start. A part that is in the
// output of its owner is still read by others, so the result is kept aside.
bool AllreduceOp::CombineAlone(const CollectiveCall& call) {
  void* output = call.output;
  if (lease_.control != nullptr && !participants_[me_].staged) {
    result_.resize(call.bytes());
    output = result_.data();
  }
  CombineAll(call, inputs_, output);
  combined_ = true;
  Leave();
  if (!result_.empty()) return false;
  room_.leases.ReclaimWhenReleased(&lease_, self_);
  return true;
}

Result<bool> AllreduceOp::AdvanceAlone(const CollectiveCall& call) {
  if (!combined_) {
    if (!AllCopied(participants_, members_)) return false;
    if (CombineAlone(call)) return true;
  }
  if (!lease_.ReleasedByAllBut(self_)) return false;
  CopyRange(call.output, result_.data(), call.bytes());
  Reclaim();
  return true;
}

void AllreduceOp::Leave() {
  for (ReleaseFlag* flag : release_flags_) flag->store(1, std::memory_order_release);
}

}  // namespace

std::unique_ptr<ShmOp> MakeAllreduceOp(ShmRoom room) { return std::make_unique<AllreduceOp>(room); }

}  // namespace hvd
