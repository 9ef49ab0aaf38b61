// SharedHeap: memory of this rank that the other ranks of the host can reach ("registered" memory).
//
// Grows by data segments and never moves one. Each segment is shared memory with an id; a peer that
// hears (id, offset) finds the same bytes in its own mapping of that segment (SharedMemoryMap).
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

// Where segments come from: the agent of this host, or this process itself in a world of one.
// Thread-safe.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  // A new segment of this rank; pages are not yet reserved.
  virtual Result<DataSegment> Allocate(uint64_t bytes) = 0;
  // A segment of any local rank.
  virtual Result<DataSegment> Fetch(uint32_t id) = 0;
  virtual void Free(uint32_t id) = 0;
};

// A place in some rank's registered memory, the same in every process of the host.
struct Location {
  uint32_t segment = 0;  // 0: nowhere
  uint64_t offset = 0;
};

// Until when memory of a SharedHeap is in use.
enum class Until {
  kFreed,      // until Free
  kWorldEnds,  // until Free, and not beyond the world: see SharedHeap::ReclaimWorld
};

class SharedHeap {
 public:
  explicit SharedHeap(SegmentSource& source) : source_(source) {}
  ~SharedHeap();
  SharedHeap(const SharedHeap&) = delete;

  // 64-byte aligned; zeroed when `zeroed`. nullptr and the reason in *why when there is no memory.
  void* Allocate(size_t bytes, bool zeroed, Status* why = nullptr, Until until = Until::kFreed);
  // The same, or private memory when there is no shared memory: Free takes both, Locate finds the
  // former only.
  void* AllocateAnywhere(size_t bytes, Status* why = nullptr);
  // Memory of another kind, such as a device's, that is given back by Free as well: it calls
  // `release`, once.
  void Adopt(void* memory, std::function<void()> release);
  // False when `memory` was not given by this heap or is free already.
  bool Free(void* memory);
  // Frees what was allocated until the world ends. To be called when no process of the worlds that
  // this one was in can still reach that memory through them.
  void ReclaimWorld();
  // Where a range lies, if all of it is inside one allocation-bearing segment of this heap.
  std::optional<Location> Locate(const void* memory, size_t bytes) const;

  // Around fork(): nobody is inside the heap while the process is copied. In the child,
  // MakePrivateAfterFork (between the two) turns every segment into a private view, so that the
  // child cannot write into the world.
  void LockForFork() const HVD_ACQUIRE(mutex_) { mutex_.lock(); }
  void UnlockAfterFork() const HVD_RELEASE(mutex_) { mutex_.unlock(); }
  void MakePrivateAfterFork() const HVD_REQUIRES(mutex_);

 private:
  friend struct HeapDamage;  // of the unit tests, which show that the checks notice it
  struct Segment {
    DataSegment origin;
    Mapping mapping;
    std::map<uint64_t, uint64_t> free;  // offset -> bytes, never adjacent to each other
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
  std::set<void*> private_ HVD_GUARDED_BY(mutex_);  // of AllocateAnywhere
  std::map<void*, std::function<void()>> adopted_ HVD_GUARDED_BY(mutex_);
};

// This process's mappings of peers' segments, made when first needed and kept. Thread-safe.
class SharedMemoryMap {
 public:
  explicit SharedMemoryMap(SegmentSource& source) : source_(source) {}

  // The address of the range in this process.
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

// Segments of a process without an agent: plain shared memory, ids counted here.
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
