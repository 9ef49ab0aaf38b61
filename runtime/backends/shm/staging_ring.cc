#include "runtime/backends/shm/staging_ring.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/device/host_copy.h"

namespace hvd {

StagingRing::StagingRing(const CollectiveCall& call, Place own)
    : count_(call.count),
      chunk_(kChunkBytes / SizeOf(call.dtype)),
      element_(SizeOf(call.dtype)),
      chunks_((count_ + chunk_ - 1) / chunk_),
      own_(own) {}

void StagingRing::Join(std::vector<Place> places, uint32_t me, const ReduceSpec& spec) {
  places_ = std::move(places);
  me_ = me;
  spec_ = spec;
  inputs_.resize(places_.size());
  failed_looks_ = 0;  // all are at work just now
}

std::byte* StagingRing::SlotOf(const Place& place, uint64_t chunk) const {
  return place.slots + chunk % kSlots * chunk_ * element_;
}

std::byte* StagingRing::AsideOf(const Place& place, uint64_t chunk) const {
  return place.copy + chunk * chunk_ * element_;
}

// Where `p` has put a chunk that it has posted.
std::byte* StagingRing::ChunkOf(uint32_t p, uint64_t chunk) const {
  const Place& place = places_[p];
  const auto& aside = place.words->aside[chunk % RingWords::kLead];
  return aside.load(std::memory_order_relaxed) != 0 ? AsideOf(place, chunk) : SlotOf(place, chunk);
}

ElementRange StagingRing::ChunkAt(uint64_t chunk) const {
  const size_t first = chunk * chunk_;
  return {first, std::min(chunk_, count_ - first)};
}

// The part of a chunk that `p` combines, counted from the beginning of the chunk.
ElementRange StagingRing::SliceOf(uint32_t p, const ElementRange& chunk) const {
  const size_t each =
      RoundUp((chunk.count + places_.size() - 1) / places_.size(), kCacheLine / element_);
  const size_t first = std::min(chunk.count, p * each);
  return {first, std::min(each, chunk.count - first)};
}

uint64_t StagingRing::Least(std::atomic<uint64_t> RingWords::*word) const {
  uint64_t least = chunks_;
  for (const Place& place : places_) {
    least = std::min(least, (place.words->*word).load(std::memory_order_acquire));
  }
  return least;
}

void StagingRing::Publish(std::atomic<uint64_t> RingWords::*word, uint64_t value) {
  (own_.words->*word).store(value, std::memory_order_release);
  published_ = true;
}

void StagingRing::Post(const CollectiveCall& call) {
  while (posted_ < chunks_ && HasSlot()) PostOne(call);
}

void StagingRing::PostAside(const CollectiveCall& call) {
  if (posted_ == chunks_ || ++failed_looks_ <= kPatience) return;
  for (int i = 0; i < kAsideAtOnce && MayGoAside(); ++i) PostOne(call);
}

void StagingRing::PostOne(const CollectiveCall& call) {
  const ElementRange range = ChunkAt(posted_);
  const bool aside = !HasSlot();
  went_aside_ = went_aside_ || aside;
  if (!aside) failed_looks_ = 0;
  CopyRange(aside ? AsideOf(own_, posted_) : SlotOf(own_, posted_),
            static_cast<const std::byte*>(call.input) + range.first * element_,
            range.count * element_);
  own_.words->aside[posted_ % RingWords::kLead].store(aside ? 1 : 0, std::memory_order_relaxed);
  Publish(&RingWords::posted, ++posted_);
}

// Each adds up for itself: the own input in place, the other where it was put.
void StagingRing::Combine(const CollectiveCall& call) {
  const ElementRange range = ChunkAt(taken_);
  const size_t skipped = range.first * element_;
  for (uint32_t p = 0; p < places_.size(); ++p) {
    inputs_[p] =
        p == me_ ? static_cast<const std::byte*>(call.input) + skipped : ChunkOf(p, taken_);
  }
  void* output = static_cast<std::byte*>(call.output) + skipped;
  ReduceRange(spec_, inputs_, {&output, 1}, 0, range.count);
  Publish(&RingWords::taken, ++taken_);
}

// The own slice of all inputs: into the own chunk, of which no other rank reads that slice, and
// into the output.
void StagingRing::ReduceSlice(const CollectiveCall& call) {
  const ElementRange range = ChunkAt(reduced_);
  const ElementRange slice = SliceOf(me_, range);
  for (uint32_t p = 0; p < places_.size(); ++p) inputs_[p] = ChunkOf(p, reduced_);
  void* outputs[] = {ChunkOf(me_, reduced_),
                     static_cast<std::byte*>(call.output) + range.first * element_};
  ReduceRange(spec_, inputs_, outputs, slice.first, slice.count);
  Publish(&RingWords::reduced, ++reduced_);
}

void StagingRing::CopySlices(const CollectiveCall& call) {
  const ElementRange range = ChunkAt(taken_);
  for (uint32_t p = 0; p < places_.size(); ++p) {
    const ElementRange slice = SliceOf(p, range);
    if (p == me_ || slice.count == 0) continue;
    CopyRange(static_cast<std::byte*>(call.output) + (range.first + slice.first) * element_,
              ChunkOf(p, taken_) + slice.first * element_, slice.count * element_);
  }
  Publish(&RingWords::taken, ++taken_);
}

// The last step of the chunks that are ready for it; false if there were none.
bool StagingRing::Finish(const CollectiveCall& call) {
  const uint64_t before = taken_;
  const uint64_t ready = Least(sliced() ? &RingWords::reduced : &RingWords::posted);
  while (taken_ < ready) sliced() ? CopySlices(call) : Combine(call);
  return taken_ != before;
}

// Does everything that needs no waiting; false if there was nothing to do.
bool StagingRing::Step(const CollectiveCall& call) {
  bool moved = Finish(call);
  if (sliced() && reduced_ < Least(&RingWords::posted)) {
    ReduceSlice(call);
    moved = true;
  }
  if (posted_ == chunks_) return moved;
  if (!HasSlot()) least_taken_ = Least(&RingWords::taken);
  if (!HasSlot()) return moved;
  PostOne(call);
  return true;
}

bool StagingRing::Advance(const CollectiveCall& call) {
  while (taken_ < chunks_ && Step(call)) {
  }
  PostAside(call);
  return taken_ == chunks_;
}

bool StagingRing::PopPublished() { return std::exchange(published_, false); }

bool StagingRing::Needs(uint32_t p) const {
  const RingWords& words = *places_[p].words;
  if (p == me_ || taken_ == chunks_) return false;
  return words.posted.load(std::memory_order_acquire) < chunks_ ||
         (sliced() && words.reduced.load(std::memory_order_acquire) < chunks_) ||
         (posted_ < chunks_ &&
          words.taken.load(std::memory_order_acquire) + RingWords::kLead < chunks_);
}

bool StagingRing::Awaits(uint32_t p) const {
  const RingWords& words = *places_[p].words;
  if (p == me_ || taken_ == chunks_) return false;
  if (posted_ == taken_) {
    return words.taken.load(std::memory_order_acquire) + RingWords::kLead <= posted_;
  }
  const bool sums = sliced() && reduced_ > taken_;
  return (sums ? words.reduced : words.posted).load(std::memory_order_acquire) <= taken_;
}

}  // namespace hvd
