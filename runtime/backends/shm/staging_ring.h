// StagingRing: an allreduce of private buffers through a few slots per participant that stay in the
// cache, chunk by chunk. DESIGN.md has the picture.
//
// Each participant copies its chunks into its own slots and says so in its own words; nobody writes
// into the slots or words of another. Of one or two, each combines every chunk for itself; of more,
// each combines one slice of a chunk and takes the other slices from their owners. One that has
// waited for the others in vain goes on into a copy that is as large as its input, because they may
// have no core just now. One thread at a time.
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

// How far one participant is; written by it only. Zero in the beginning.
struct alignas(kCacheLine) RingWords {
  // So many chunks may lie where not all have taken them.
  static constexpr uint64_t kLead = 512;

  std::atomic<uint64_t> posted;   // chunks of its input that it has put where the others read them
  std::atomic<uint64_t> reduced;  // of three or more: chunks whose slice it has combined
  std::atomic<uint64_t> taken;    // chunks of all participants that it reads no more
  // Of chunk c, at c % kLead: 1 when it lies in the copy, at its own place, and not in a slot.
  // Stored before `posted`.
  std::atomic<uint8_t> aside[kLead];
};

class StagingRing {
 public:
  static constexpr uint64_t kSlots = 4;
  static constexpr size_t kChunkBytes = 64 << 10;
  // Bytes of all slots of one participant.
  static constexpr size_t kWindowBytes = kSlots * kChunkBytes;
  // From this size on the ring is faster than data that stay where they were copied, unless a core
  // has a smaller second-level cache.
  static constexpr size_t kFrom = 2 << 20;
  // Bytes of the smallest allreduce for it: a copy of that does not fit into the second-level cache
  // of a core, which has so many bytes; 0: not known.
  static constexpr size_t From(size_t cache_bytes) {
    return cache_bytes == 0 ? kFrom : std::clamp(cache_bytes, kWindowBytes, kFrom);
  }
  // So many failed looks for a slot before the next chunk goes aside: longer than a peer at work
  // takes for a chunk, shorter than a thread looks before it gives its core away.
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

  // Copies chunks into the own slots as long as there is room, before anybody else is there.
  void Post(const CollectiveCall& call);
  // To be called when there is nothing else to do, also before all others are there: after a while
  // puts chunks aside.
  void PostAside(const CollectiveCall& call);
  // All participants in order of rank, this one at `me`.
  void Join(std::vector<Place> places, uint32_t me, const ReduceSpec& spec);
  // Does all steps that need no waiting; true when the output is complete. Then the others may
  // still read the own slots and words.
  bool Advance(const CollectiveCall& call);

  // Something was stored for the others since the last call.
  bool TakeNews();
  // The own copy was used, so the others may still read it.
  bool went_aside() const { return went_aside_; }
  // Participant `p`, which does nothing any more, leaves this one without an end.
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
  void TakeSlices(const CollectiveCall& call);
  bool Finish(const CollectiveCall& call);
  void Publish(std::atomic<uint64_t> RingWords::*word, uint64_t value);

  size_t count_ = 0, chunk_ = 0, element_ = 1;  // elements; bytes of one
  uint64_t chunks_ = 0;
  Place own_;
  std::vector<Place> places_;
  uint32_t me_ = 0;
  ReduceSpec spec_;
  std::vector<const void*> inputs_;  // of the step at hand
  uint64_t posted_ = 0, reduced_ = 0, taken_ = 0;
  uint64_t least_taken_ = 0;   // when last looked
  uint32_t failed_looks_ = 0;  // looks since the last chunk that found a slot
  bool news_ = false, went_aside_ = false;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_SHM_STAGING_RING_H_
