#include "runtime/backends/shm/gather_stream.h"

#include <cstring>

#include "runtime/backends/shm/chunking.h"
#include "runtime/base/align.h"
#include "runtime/device/host_copy.h"

namespace hvd {
namespace {

// Smaller pieces cost more to announce than to copy.
constexpr size_t kSmallestPiece = 4 << 10;

bool HasPartsOfTheirOwn(Collective collective) {
  return collective == Collective::kAlltoall || collective == Collective::kReducescatter;
}

}  // namespace

// ---- the cut

bool StreamCut::Pays(Collective collective, size_t bytes) {
  if (collective == Collective::kBroadcast || collective == Collective::kAlltoall)
    return bytes >= kFrom;
  return bytes >= kFromOfAll && bytes < kBelowOfAll;
}

bool StreamCut::TooManyMembers(const CollectiveCall& call) {
  return HasPartsOfTheirOwn(call.collective) &&
         (call.group->local_size() - 1) * kSmallestPiece > kChunkBytes;
}

StreamCut::StreamCut(const CollectiveCall& call, uint32_t owner, const Extent& extent)
    : owner_(owner) {
  const size_t row = call.row_bytes();
  if (!HasPartsOfTheirOwn(call.collective)) {
    const bool may_differ = call.collective == Collective::kAllgather;
    parts_.push_back({0, may_differ ? static_cast<size_t>(extent.rows) * row : call.bytes()});
  } else {
    const uint32_t members = call.group->local_size();
    int64_t before = 0;
    for (uint32_t m = 0; m < members; ++m) {
      const int64_t rows = call.collective == Collective::kAlltoall
                               ? extent.splits[m]
                               : RowsOf(m, call.rows, members).count;
      if (m != owner)
        parts_.push_back({static_cast<size_t>(before) * row, static_cast<size_t>(rows) * row});
      before += rows;
    }
  }
  // Whole cache lines, hence whole elements.
  piece_ = kChunkBytes / parts_.size() / kCacheLine * kCacheLine;
  for (const Part& part : parts_) chunks_ = std::max(chunks_, chunks_of(part));
}

// ---- the memory

StreamPlace::StreamPlace(std::byte* control, uint32_t members, std::byte* copied)
    : words(reinterpret_cast<StreamWords*>(control + ReleaseFlagBytes(members))),
      readers(reinterpret_cast<StreamReaderWord*>(words + 1)),
      slots(control + ZeroedFor(members)),
      copy(copied) {}

// ---- the owner

StreamSource::StreamSource(StreamCut cut, StreamPlace place, const void* input, uint32_t members,
                           uint32_t self)
    : cut_(std::move(cut)),
      place_(place),
      input_(static_cast<const std::byte*>(input)),
      members_(members),
      self_(self) {}

uint64_t StreamSource::LeastTaken() const {
  uint64_t least = StreamReaderWord::kAll - StreamWords::kSlots;
  for (uint32_t m = 0; m < members_; ++m) {
    if (m != self_)
      least = std::min(least, place_.readers[m].taken.load(std::memory_order_acquire));
  }
  return least;
}

bool StreamSource::HasSlot() {
  if (posted_ < least_taken_ + StreamWords::kSlots) return true;
  least_taken_ = LeastTaken();
  return posted_ < least_taken_ + StreamWords::kSlots;
}

bool StreamSource::Post() {
  if (done() || !HasSlot()) return false;
  failed_looks_ = 0;
  PostOne(/*aside=*/false);
  return true;
}

void StreamSource::PostAside() {
  if (done() || ++failed_looks_ <= kPatience) return;
  for (int i = 0; i < kAsideAtOnce && !done(); ++i) {
    if (!Post()) PostOne(/*aside=*/true);
  }
}

void StreamSource::PostAll() {
  while (!done()) {
    if (!Post()) PostOne(/*aside=*/true);
  }
}

void StreamSource::PostOne(bool aside) {
  const uint64_t slot = posted_ % StreamWords::kSlots;
  std::byte* in_slot = place_.slots + slot * cut_.slot_bytes();
  size_t skipped = 0;
  for (const StreamCut::Part& part : cut_.parts()) {
    const StreamCut::Part piece = cut_.PieceOf(part, posted_);
    std::byte* to = aside ? place_.copy + piece.first : in_slot + skipped;
    if (piece.bytes != 0) CopyRange(to, input_ + piece.first, piece.bytes);
    skipped += cut_.piece_bytes();
  }
  ++posted_;
  went_aside_ = went_aside_ || aside;
  if (!aside) place_.words->in_slot[slot].store(posted_, std::memory_order_relaxed);
  place_.words->posted.store(posted_, std::memory_order_release);
  published_ = true;
}

size_t StreamSource::posted_bytes() const {
  const StreamCut::Part& part = cut_.parts()[0];
  return cut_.PieceOf(part, posted_).first - part.first;
}

// ---- a reader

StreamReader::StreamReader(StreamCut cut, StreamPlace place, uint32_t self)
    : cut_(std::move(cut)),
      place_(place),
      self_(self),
      part_(cut_.part_of(self)),
      chunks_(cut_.chunks_of(part_)) {
  if (chunks_ == 0)
    place_.readers[self_].taken.store(StreamReaderWord::kAll, std::memory_order_release);
}

size_t StreamReader::taken_bytes() const { return cut_.PieceOf(part_, taken_).first - part_.first; }

bool StreamReader::lacks() const { return !done() && Posted() < chunks_; }

bool StreamReader::ready() {
  if (done()) return false;
  if (posted_ == taken_) posted_ = Posted();
  return posted_ > taken_;
}

std::span<const std::byte> StreamReader::Next() const {
  const StreamCut::Part piece = cut_.PieceOf(part_, taken_);
  const uint64_t slot = taken_ % StreamWords::kSlots;
  // No later chunk enters the slot before this reader has read this one.
  const uint64_t lies_there = place_.words->in_slot[slot].load(std::memory_order_relaxed);
  const std::byte* from = lies_there == taken_ + 1
                              ? place_.slots + slot * cut_.slot_bytes() + cut_.InSlot(self_)
                              : place_.copy + piece.first;
  return {from, piece.bytes};
}

void StreamReader::Pop() {
  ++taken_;
  place_.readers[self_].taken.store(done() ? StreamReaderWord::kAll : taken_,
                                    std::memory_order_release);
}

}  // namespace hvd
