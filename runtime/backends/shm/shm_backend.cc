#include "runtime/backends/shm/shm_backend.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <utility>

#include "runtime/base/align.h"
#include "runtime/segment/job_page.h"

namespace hvd {
namespace {

constexpr size_t kSmallestChunk = 8 << 10;
constexpr size_t kLargestChunk = 128 << 10;
constexpr size_t kChunksPerSlice = 4;

// Every rank reads every payload, so the limit shrinks with the number of ranks.
size_t InlineLimit(uint32_t size) { return std::clamp<size_t>(16384 / size, 512, 8192); }

Arithmetic ArithmeticOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kMin: return Arithmetic::kMin;
    case ReduceOp::kMax: return Arithmetic::kMax;
    case ReduceOp::kProduct: return Arithmetic::kProduct;
    default: return Arithmetic::kSum;
  }
}

// How an allreduce is cut: one slice of elements per rank, each slice into chunks. A pure function of the sizes, so that
// every rank cuts alike.
class Cut {
 public:
  Cut(size_t count, size_t element_bytes, uint32_t ranks) : count_(count) {
    const size_t line = kCacheLine / element_bytes;
    slice_ = RoundUp((count + ranks - 1) / ranks, line);
    const size_t chunk_bytes =
        std::clamp(slice_ * element_bytes / kChunksPerSlice, kSmallestChunk, kLargestChunk);
    chunk_ = RoundUp(chunk_bytes / element_bytes, line);
  }

  size_t first_of(uint32_t lane) const { return std::min(count_, lane * slice_); }
  uint32_t chunks_of(uint32_t lane) const {
    size_t elements = first_of(lane + 1) - first_of(lane);
    return static_cast<uint32_t>((elements + chunk_ - 1) / chunk_);
  }
  // [first, first + count) of the tensor's elements.
  std::pair<size_t, size_t> chunk(uint32_t lane, uint32_t index) const {
    size_t first = first_of(lane) + index * chunk_;
    return {first, std::min(chunk_, first_of(lane + 1) - first)};
  }

 private:
  size_t count_, slice_, chunk_;
};

Location LocationIn(const Offer& offer, size_t word) {
  return {static_cast<uint32_t>(offer.words[word]), offer.words[word + 1]};
}

void Put(Offer* offer, size_t word, Location location) {
  offer->words[word] = location.segment;
  offer->words[word + 1] = location.offset;
}

constexpr size_t kDataWord = 0, kLanesWord = 2;

}  // namespace

// The shared state of one operation: a lane per rank, in memory of the leader.
struct alignas(kCacheLine) ShmBackend::Lane {
  std::atomic<uint32_t> claimed{0};  // chunks of this rank's slice that somebody has taken
  std::atomic<uint32_t> done{
      0};  // chunks, of any slice, that this rank has finished; written by it only
  std::atomic<uint32_t> left{
      0};  // 1: this rank will not look at the lanes or at foreign data again
};

struct ShmBackend::SharedOp final : OpState {
  std::byte* data = nullptr;  // this rank's part, registered; null for a receiver of a broadcast
  bool staged = false;        // `data` is a copy, owned by this operation
  Lane* lanes = nullptr;
  bool leader = false;         // owns the lanes
  std::vector<void*> data_of;  // every rank's part, in this process
  uint32_t chunk_count = 0;
};

ShmBackend::ShmBackend(uint32_t rank, uint32_t size, SharedHeap& heap, SharedMemoryMap& peer_memory)
    : rank_(rank),
      size_(size),
      inline_limit_bytes_(InlineLimit(size)),
      heap_(heap),
      peer_memory_(peer_memory) {}

// What is still in use by a peer stays allocated: the group is over and nobody can say when the peer is done.
ShmBackend::~ShmBackend() { FreeRetired(); }

bool ShmBackend::IsInline(const CollectiveCall& call) const {
  return size_ == 1 || call.bytes() <= inline_limit_bytes_;
}

uint32_t ShmBackend::LeaderOf(const CollectiveCall& call) const {
  return call.collective == Collective::kBroadcast ? call.root : 0;
}

bool ShmBackend::SendsData(const CollectiveCall& call) const {
  return call.collective == Collective::kAllreduce || call.root == rank_;
}

ReduceSpec ShmBackend::SpecOf(const CollectiveCall& call) const {
  double divisor = call.op == ReduceOp::kAverage ? size_ : 1.0;
  return {call.dtype, ArithmeticOf(call.op), call.prescale, call.postscale, divisor};
}

Result<Offer> ShmBackend::Prepare(const CollectiveCall& call, std::unique_ptr<OpState>* state) {
  if (!retired_.empty()) FreeRetired();
  if (IsInline(call)) return PrepareInline(call);
  return PrepareShared(call, state);
}

Offer ShmBackend::PrepareInline(const CollectiveCall& call) const {
  Offer offer;
  bool needed = size_ > 1 && call.collective != Collective::kBarrier && SendsData(call);
  if (needed) offer.payload = {static_cast<const std::byte*>(call.input), call.bytes()};
  return offer;
}

Result<Offer> ShmBackend::PrepareShared(const CollectiveCall& call,
                                        std::unique_ptr<OpState>* state) {
  Offer offer;
  auto op = std::make_unique<SharedOp>();
  op->leader = LeaderOf(call) == rank_;
  Status offered = SendsData(call) ? OfferData(call, *op, &offer) : Status::Ok();
  if (offered.ok() && op->leader) offered = OfferLanes(*op, &offer);
  if (!offered.ok()) {
    Abandon(std::move(op), false);
    return offered;
  }
  *state = std::move(op);
  return offer;
}

// Reduces in the output where that is registered; otherwise in a registered copy of the input.
Status ShmBackend::OfferData(const CollectiveCall& call, SharedOp& op, Offer* offer) {
  bool only_read = call.collective == Collective::kBroadcast;
  void* place = only_read ? const_cast<void*>(call.input) : call.output;
  std::optional<Location> location = heap_.Locate(place, call.bytes());
  if (!location) {
    Status why;
    place = heap_.Allocate(call.bytes(), /*zeroed=*/false, &why);
    if (place == nullptr) return why;
    op.staged = true;
    location = heap_.Locate(place, call.bytes());
  }
  if (place != call.input) std::memcpy(place, call.input, call.bytes());
  op.data = static_cast<std::byte*>(place);
  Put(offer, kDataWord, *location);
  return Status::Ok();
}

Status ShmBackend::OfferLanes(SharedOp& op, Offer* offer) {
  Status why;
  void* memory = heap_.Allocate(sizeof(Lane) * size_, /*zeroed=*/false, &why);
  if (memory == nullptr) return why;
  op.lanes = new (memory) Lane[size_];
  Put(offer, kLanesWord, *heap_.Locate(memory, sizeof(Lane) * size_));
  return Status::Ok();
}

Result<bool> ShmBackend::Start(const CollectiveCall& call, OpState* state,
                               std::span<const Offer> offers) {
  if (state == nullptr) {
    FinishInline(call, offers);
    return true;
  }
  Status attached = Attach(call, static_cast<SharedOp&>(*state), offers);
  if (!attached.ok()) return attached;
  return false;
}

Result<bool> ShmBackend::Advance(const CollectiveCall& call, OpState* state) {
  auto& op = static_cast<SharedOp&>(*state);
  return call.collective == Collective::kBroadcast ? AdvanceBroadcast(call, op)
                                                   : AdvanceAllreduce(call, op);
}

void ShmBackend::FinishInline(const CollectiveCall& call, std::span<const Offer> offers) {
  if (call.collective == Collective::kBarrier || call.count == 0) return;
  if (call.collective == Collective::kBroadcast) {
    const void* source = call.root == rank_ ? call.input : offers[call.root].payload.data();
    if (source != call.output) std::memcpy(call.output, source, call.bytes());
    return;
  }
  constexpr uint32_t kOnStack = 64;
  const void* stack[kOnStack];
  std::vector<const void*> heap(size_ > kOnStack ? size_ : 0);
  const void** inputs = size_ > kOnStack ? heap.data() : stack;
  for (uint32_t r = 0; r < size_; ++r) {
    inputs[r] = r == rank_ ? call.input : offers[r].payload.data();
  }
  ReduceRange(SpecOf(call), {inputs, size_}, {&call.output, 1}, 0, call.count);
}

// Finds every rank's part in this process, once all have offered.
Status ShmBackend::Attach(const CollectiveCall& call, SharedOp& op, std::span<const Offer> offers) {
  if (!op.leader) {
    Location location = LocationIn(offers[LeaderOf(call)], kLanesWord);
    Result<std::byte*> lanes = peer_memory_.Resolve(location, sizeof(Lane) * size_);
    if (!lanes.ok()) return lanes.status();
    op.lanes = reinterpret_cast<Lane*>(*lanes);
  }
  op.data_of.assign(size_, nullptr);
  for (uint32_t r = 0; r < size_; ++r) {
    Location location = LocationIn(offers[r], kDataWord);
    if (r == rank_) {
      op.data_of[r] = op.data;
    } else if (location.segment != 0) {
      Result<std::byte*> data = peer_memory_.Resolve(location, call.bytes());
      if (!data.ok()) return data.status();
      op.data_of[r] = *data;
    }
  }
  Cut cut(call.count, SizeOf(call.dtype), size_);
  for (uint32_t lane = 0; lane < size_; ++lane) op.chunk_count += cut.chunks_of(lane);
  return Status::Ok();
}

// Takes chunks until none is left: first those of the own slice, whose data is near, then those of ranks that are late.
bool ShmBackend::AdvanceAllreduce(const CollectiveCall& call, SharedOp& op) {
  const Cut cut(call.count, SizeOf(call.dtype), size_);
  for (uint32_t step = 0; step < size_; ++step) {
    const uint32_t lane = (rank_ + step) % size_;
    const uint32_t chunks = cut.chunks_of(lane);
    std::atomic<uint32_t>& claimed = op.lanes[lane].claimed;
    while (claimed.load(std::memory_order_relaxed) < chunks) {
      uint32_t chunk = claimed.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= chunks) break;
      ReduceChunk(call, op, lane, chunk);
    }
  }
  uint32_t done = 0;
  for (uint32_t r = 0; r < size_; ++r) done += op.lanes[r].done.load(std::memory_order_acquire);
  if (done != op.chunk_count) return false;
  if (op.staged) {
    std::memcpy(call.output, op.data, call.bytes());
    heap_.Free(op.data);  // every chunk is done: no peer reads it any more
  }
  Retire(op, nullptr);
  return true;
}

void ShmBackend::ReduceChunk(const CollectiveCall& call, SharedOp& op, uint32_t lane,
                             uint32_t chunk) {
  auto [first, count] = Cut(call.count, SizeOf(call.dtype), size_).chunk(lane, chunk);
  ReduceRange(SpecOf(call), op.data_of, op.data_of, first, count);
  std::atomic<uint32_t>& done = op.lanes[rank_].done;
  done.store(done.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

bool ShmBackend::AdvanceBroadcast(const CollectiveCall& call, SharedOp& op) {
  if (rank_ != call.root) {
    std::memcpy(call.output, op.data_of[call.root], call.bytes());
    Retire(op, nullptr);
    return true;
  }
  // The user may change a registered buffer as soon as we are done, so wait for the readers; a copy needs no waiting.
  if (!op.staged && !AllOthersLeft(op.lanes)) return false;
  if (call.output != call.input) std::memcpy(call.output, call.input, call.bytes());
  Retire(op, op.staged ? op.data : nullptr);
  return true;
}

bool ShmBackend::AllOthersLeft(const Lane* lanes) const {
  for (uint32_t r = 0; r < size_; ++r) {
    if (r != rank_ && lanes[r].left.load(std::memory_order_acquire) == 0) return false;
  }
  return true;
}

void ShmBackend::Retire(SharedOp& op, void* staging) {
  op.lanes[rank_].left.store(1, std::memory_order_release);
  if (op.leader) retired_.push_back({op.lanes, staging});
}

void ShmBackend::FreeRetired() {
  std::erase_if(retired_, [this](const Retired& retired) {
    if (!AllOthersLeft(retired.lanes)) return false;
    heap_.Free(retired.lanes);
    if (retired.staging != nullptr) heap_.Free(retired.staging);
    return true;
  });
}

// Chunks of an allreduce are done by whoever is there; only the root of a broadcast waits for each reader.
bool ShmBackend::Needs(const CollectiveCall& call, const OpState* state, uint32_t peer) const {
  if (call.collective != Collective::kBroadcast || call.root != rank_) return false;
  const auto& op = static_cast<const SharedOp&>(*state);
  return op.lanes[peer].left.load(std::memory_order_acquire) == 0;
}

void ShmBackend::Abandon(std::unique_ptr<OpState> state, bool peers_may_work) {
  if (state == nullptr || peers_may_work) return;
  auto& op = static_cast<SharedOp&>(*state);
  if (op.staged) heap_.Free(op.data);
  if (op.leader && op.lanes != nullptr) heap_.Free(op.lanes);
}

}  // namespace hvd
