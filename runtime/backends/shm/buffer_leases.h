// BufferLeases: memory of this rank that its peers read during an operation, sometimes after this
// rank has finished it.
//
// Each lease has a control block: one release flag per member, which the member sets after its last
// read of the lease, and other shared state of the operation. A lease ends when all members have
// released it. One thread at a time.
#ifndef HVD_RUNTIME_BACKENDS_SHM_BUFFER_LEASES_H_
#define HVD_RUNTIME_BACKENDS_SHM_BUFFER_LEASES_H_

#include <atomic>
#include <map>
#include <span>
#include <vector>

#include "runtime/backends/backend.h"
#include "runtime/base/align.h"
#include "runtime/base/check.h"
#include "runtime/device/shared_heap.h"
#include "runtime/segment/job_page.h"

namespace hvd {

using ReleaseFlag = std::atomic<uint8_t>;  // 1: this member has left

// Bytes of the release flags at the beginning of a control block.
constexpr size_t ReleaseFlagBytes(uint32_t members) { return RoundUp(members, kCacheLine); }

inline ReleaseFlag* ReleaseFlagOf(std::byte* control, uint32_t member) {
  return reinterpret_cast<ReleaseFlag*>(control) + member;
}

struct Lease {
  std::byte* control = nullptr;
  size_t control_bytes = 0;
  Location control_at;
  uint32_t members = 0;
  void* staging = nullptr;  // a copy of the caller's data, or nullptr

  ReleaseFlag* release_flags() const { return reinterpret_cast<ReleaseFlag*>(control); }
  bool ReleasedBy(uint32_t member) const {
    HVD_CHECK(control != nullptr && member < members, member, members);
    return release_flags()[member].load(std::memory_order_acquire) != 0;
  }
  bool ReleasedByAllBut(uint32_t member) const;
};

// A lease in a descriptor: the data in words 0 and 1, the control block and the chunk size in words
// 2 and 3.
struct LeaseDescriptor {
  Location data, control;
  bool staged = false;     // the data is a copy that the owner's application does not read
  uint32_t chunk_kib = 0;  // of an allreduce: its largest chunk; 0: Chunking::kLargestChunk
  // The control block has the slots of a StagingRing; the data are copied only if those are not
  // used.
  bool ring = false;

  void WriteTo(BufferDescriptor* descriptor) const;
  static LeaseDescriptor In(const BufferDescriptor& descriptor);
};

// Warns, once per process, that tensors travel in the requests from now on.
void WarnWithoutSharedMemory(size_t bytes);

class BufferLeases {
 public:
  explicit BufferLeases(SharedHeap& heap) : heap_(heap) {}
  ~BufferLeases();
  BufferLeases(const BufferLeases&) = delete;

  // A control block of `bytes`, of which the first `zeroed` are 0, release flags included.
  Result<Lease> Open(uint32_t members, size_t bytes, size_t zeroed);
  Result<Lease> Open(uint32_t members, size_t bytes) { return Open(members, bytes, bytes); }
  // Adds a copy of `bytes` bytes to a lease, or space for one.
  Result<Location> Stage(Lease* lease, const void* source, size_t bytes);
  Result<Location> Reserve(Lease* lease, size_t bytes);

  // Requires that no other rank reads the copy.
  void FreeCopy(Lease* lease);
  // Requires that no other rank reads any of it.
  void Reclaim(Lease* lease);
  // Members other than `self` may still read it.
  void ReclaimWhenReleased(Lease* lease, uint32_t self);
  // Takes back leases that all members have released.
  void Collect() {
    if (!waiting_.empty()) CollectWaiting();
  }

  SharedHeap& heap() { return heap_; }

 private:
  struct Block {
    std::byte* memory;
    Location at;
  };
  struct Waiting {
    Lease lease;
    uint32_t self;
  };
  void CollectWaiting();

  SharedHeap& heap_;
  std::map<size_t, std::vector<Block>> idle_;  // control blocks by size
  std::vector<Waiting> waiting_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_SHM_BUFFER_LEASES_H_
