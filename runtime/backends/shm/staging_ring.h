// StagingRing: a chunk-by-chunk allreduce of private buffers through a few slots per participant
// that stay in the cache. DESIGN.md has the picture.
//
// Each participant copies its chunks into its own slots and publishes its progress in its own
// words; only the owner writes them. One or two participants each combine every chunk; of more,
// each combines one slice of a chunk and reads the other slices from their owners. One that has
// waited too long for the others continues into a copy as large as its input, because they may have
// no core just now. One thread at a time.
#ifndef HVD_RUNTIME_BACKENDS_SHM_STAGING_RING_H_
#define HVD_RUNTIME_BACKENDS_SHM_STAGING_RING_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/backends/backend.h"
#include "runtime/backends/shm/chunking.h"
#include "runtime/base/align.h"
#include "runtime/device/host_reduce.h"

namespace hvd {

// The progress of one participant; written by it only. Initially zero.
struct alignas(kCacheLine) RingWords {
  // The most chunks posted that not all have read.
  static constexpr uint64_t kLead = 512;

  std::atomic<uint64_t> posted;   // chunks of its input that the others may read
  std::atomic<uint64_t> reduced;  // with three or more: chunks whose slice it has combined
  std::atomic<uint64_t> taken;    // chunks of all participants that it is done with
  // Of chunk c, at c % kLead: 1 if it is in the copy, at its own place, and not in a slot. Stored
  // before `posted`.
  std::atomic<uint8_t> aside[kLead];
};

class StagingRing {
 public:
  static constexpr uint64_t kSlots = 4;
  static constexpr size_t kChunkBytes = 64 << 10;
  // Bytes of all slots of one participant.
  static constexpr size_t kWindowBytes = kSlots * kChunkBytes;
  // From this size on the ring is faster than whole copies, unless a core has a smaller
  // second-level cache.
  static constexpr size_t kFrom = 2 << 20;
  // Bytes of the smallest allreduce for it: a copy of that does not fit into a core's second-level
  // cache of `cache_bytes`; 0: unknown.
  static constexpr size_t From(size_t cache_bytes) {
    return cache_bytes == 0 ? kFrom : std::clamp(cache_bytes, kWindowBytes, kFrom);
  }
  // Failed polls for a slot before the next chunk goes to the copy: longer than an active peer
  // takes for a chunk, shorter than a thread polls before it yields.
  static constexpr uint32_t kPatience = 200;
  static constexpr int kAsideAtOnce = 4;

  // Of one participant, in this process.
  struct Place {
    RingWords* words = nullptr;
    std::byte* slots = nullptr;
    std::byte* copy = nullptr;  // room for all of its input
  };

  StagingRing() = default;
  StagingRing(const CollectiveCall& call, Place own);

  // Copies chunks into the own slots while there is room, before the others have arrived.
  void Post(const CollectiveCall& call);
  // Called when there is nothing else to do, also before all others have arrived: after a while
  // puts chunks into the copy.
  void PostAside(const CollectiveCall& call);
  // All participants in order of rank, this one at `me`.
  void Join(std::vector<Place> places, uint32_t me, const ReduceSpec& spec);
  // Does all steps that need no waiting; true when the output is complete. The others may then
  // still read the own slots and words.
  bool Advance(const CollectiveCall& call);

  // Whether something was stored for the others since the last call.
  bool PopPublished();
  // The own copy was used, so the others may still read it.
  bool went_aside() const { return went_aside_; }
  // This one cannot finish because participant `p` does nothing more.
  bool Needs(uint32_t p) const;
  // This one waits for the next step of `p`.
  bool Awaits(uint32_t p) const;

 private:
  bool sliced() const { return places_.size() > 2; }
  uint64_t Least(std::atomic<uint64_t> RingWords::*word) const;
  bool HasSlot() const { return posted_ < least_taken_ + kSlots; }
  bool MayGoAside() const { return posted_ < std::min(chunks_, least_taken_ + RingWords::kLead); }
  std::byte* SlotOf(const Place& place, uint64_t chunk) const;
  std::byte* AsideOf(const Place& place, uint64_t chunk) const;
  std::byte* ChunkOf(uint32_t p, uint64_t chunk) const;
  ElementRange ChunkAt(uint64_t chunk) const;
  ElementRange SliceOf(uint32_t p, const ElementRange& chunk) const;
  void PostOne(const CollectiveCall& call);
  bool Step(const CollectiveCall& call);
  void Combine(const CollectiveCall& call);
  void ReduceSlice(const CollectiveCall& call);
  void CopySlices(const CollectiveCall& call);
  bool Finish(const CollectiveCall& call);
  void Publish(std::atomic<uint64_t> RingWords::*word, uint64_t value);

  size_t count_ = 0, chunk_ = 0, element_ = 1;  // elements; bytes of one
  uint64_t chunks_ = 0;
  Place own_;
  std::vector<Place> places_;
  uint32_t me_ = 0;
  ReduceSpec spec_;
  std::vector<const void*> inputs_;  // of the current step
  uint64_t posted_ = 0, reduced_ = 0, taken_ = 0;
  uint64_t least_taken_ = 0;   // when last looked
  uint32_t failed_looks_ = 0;  // polls since the last chunk that found a slot
  bool published_ = false, went_aside_ = false;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_SHM_STAGING_RING_H_
