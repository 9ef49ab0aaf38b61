// SharedHeap: memory of this rank that the other ranks of the host can access ("registered"
// memory).
//
// Grows by data segments and never moves one. Each segment is shared memory with an id; a peer that
// receives (id, offset) finds the same bytes in its own mapping of that segment (SharedMemoryMap).
// Thread-safe.
#ifndef HVD_RUNTIME_DEVICE_SHARED_HEAP_H_
#define HVD_RUNTIME_DEVICE_SHARED_HEAP_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/segment/shared_memory.h"

namespace hvd {

struct DataSegment {
  uint32_t id = 0;
  uint64_t bytes = 0;
  UniqueFd fd;
};

// Provides segments: the agent of this host, or this process itself in a world of one. Thread-safe.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  // A new segment owned by this rank; pages are not yet reserved.
  virtual Result<DataSegment> Allocate(uint64_t bytes) = 0;
  // A segment of any local rank.
  virtual Result<DataSegment> Fetch(uint32_t id) = 0;
  virtual void Free(uint32_t id) = 0;
};

// A position in some rank's registered memory, valid in every process of the host.
struct Location {
  uint32_t segment = 0;  // 0: none
  uint64_t offset = 0;
};

// How long SharedHeap memory is in use.
enum class Until {
  kFreed,      // until Free
  kWorldEnds,  // until Free or the end of the world: see SharedHeap::ReclaimWorld
};

class SharedHeap {
 public:
  explicit SharedHeap(SegmentSource& source) : source_(source) {}
  ~SharedHeap();
  SharedHeap(const SharedHeap&) = delete;

  // 64-byte aligned; zeroed if `zeroed`. nullptr, with the reason in *why, if there is no memory.
  void* Allocate(size_t bytes, bool zeroed, Status* why = nullptr, Until until = Until::kFreed);
  // The same, falling back to private memory: Free accepts both, Locate only finds shared memory.
  void* AllocateAnywhere(size_t bytes, Status* why = nullptr);
  // Registers other memory, such as a device's, to be released through Free, which calls `release`
  // once.
  void Adopt(void* memory, std::function<void()> release);
  // False if `memory` is not from this heap or already free.
  bool Free(void* memory);
  // Frees what was allocated with kWorldEnds. Call when no process of the worlds that this one was
  // in can access that memory through them any more.
  void ReclaimWorld();
  // The location of a range that lies entirely inside one segment of this heap; else nullopt.
  std::optional<Location> Locate(const void* memory, size_t bytes) const;

  // Around fork(): keeps other threads out of the heap while the process is copied. In the child,
  // MakePrivateAfterFork (between the two) turns every segment into a private view, so that the
  // child cannot write into the world.
  void LockForFork() const HVD_ACQUIRE(mutex_) { mutex_.lock(); }
  void UnlockAfterFork() const HVD_RELEASE(mutex_) { mutex_.unlock(); }
  void MakePrivateAfterFork() const HVD_REQUIRES(mutex_);

 private:
  friend struct HeapDamage;  // in the unit tests, which prove that the checks detect damage
  struct Segment {
    DataSegment origin;
    Mapping mapping;
    std::map<uint64_t, uint64_t> free;  // offset -> bytes; no two are adjacent
    std::map<uint64_t, uint64_t> used;  // offset -> bytes
    std::set<uint64_t> of_world;        // offsets in `used` that ReclaimWorld frees
  };

  void* AllocateIn(Segment& segment, size_t bytes, Until until) HVD_REQUIRES(mutex_);
  bool FreeOwn(void* memory) HVD_REQUIRES(mutex_);
  static bool FreeIn(Segment& segment, uint64_t offset);
  Result<Segment*> Grow(size_t bytes) HVD_REQUIRES(mutex_);
  Segment* SegmentOf(const void* memory, size_t bytes) const HVD_REQUIRES(mutex_);

  SegmentSource& source_;
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Segment>> segments_ HVD_GUARDED_BY(mutex_);
  std::set<void*> private_ HVD_GUARDED_BY(mutex_);  // from AllocateAnywhere
  std::map<void*, std::function<void()>> adopted_ HVD_GUARDED_BY(mutex_);
};

// This process's mappings of peers' segments, created on first use and kept. Thread-safe.
class SharedMemoryMap {
 public:
  explicit SharedMemoryMap(SegmentSource& source) : source_(source) {}

  // The address in this process of the range at `location`.
  Result<std::byte*> Resolve(Location location, size_t bytes);
  // Unmaps everything; no address may be in use.
  void Clear();
  // As in SharedHeap.
  void LockForFork() HVD_ACQUIRE(mutex_) { mutex_.lock(); }
  void UnlockAfterFork() HVD_RELEASE(mutex_) { mutex_.unlock(); }
  void MakePrivateAfterFork() const HVD_REQUIRES(mutex_);

 private:
  struct Mapped {
    UniqueFd fd;
    Mapping mapping;
  };

  SegmentSource& source_;
  Mutex mutex_;
  std::map<uint32_t, Mapped> mapped_ HVD_GUARDED_BY(mutex_);
};

// The segments of a process without an agent: plain shared memory, ids assigned here.
class LocalSegmentSource final : public SegmentSource {
 public:
  Result<DataSegment> Allocate(uint64_t bytes) override;
  Result<DataSegment> Fetch(uint32_t id) override;
  void Free(uint32_t id) override;

 private:
  Mutex mutex_;
  uint32_t next_id_ HVD_GUARDED_BY(mutex_) = 1;
  std::map<uint32_t, DataSegment> kept_ HVD_GUARDED_BY(mutex_);
};

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_SHARED_HEAP_H_
