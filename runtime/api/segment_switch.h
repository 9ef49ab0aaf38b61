// SegmentSwitch: a SegmentSource whose underlying source is set later. The memory of this process
// outlives its worlds, but the agent that shares it is known only once a world is found. Until then
// no shared memory can be allocated; after the first allocation the source is fixed. Thread-safe.
#ifndef HVD_RUNTIME_API_SEGMENT_SWITCH_H_
#define HVD_RUNTIME_API_SEGMENT_SWITCH_H_

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/device/shared_heap.h"

namespace hvd {

class SegmentSwitch final : public SegmentSource {
 public:
  // Sets the source; false if memory of another source is in use. `source` outlives its use; null:
  // none.
  bool Point(SegmentSource* source) {
    MutexLock lock(mutex_);
    if (source_ != source && used_) return false;
    source_ = source;
    return true;
  }
  // Memory was allocated, so Point can no longer change the source.
  bool used() const {
    MutexLock lock(mutex_);
    return used_;
  }

 private:
  Result<DataSegment> Allocate(uint64_t bytes) override {
    MutexLock lock(mutex_);
    if (source_ == nullptr) {
      return OutOfMemory(
          "memory can be shared only after hvd.init(), which finds out by MPI with whom");
    }
    Result<DataSegment> segment = source_->Allocate(bytes);
    used_ |= segment.ok();
    return segment;
  }
  Result<DataSegment> Fetch(uint32_t id) override { return source()->Fetch(id); }
  void Free(uint32_t id) override { source()->Free(id); }
  SegmentSource* source() {
    MutexLock lock(mutex_);
    return source_;
  }

  mutable Mutex mutex_;
  SegmentSource* source_ HVD_GUARDED_BY(mutex_) = nullptr;
  bool used_ HVD_GUARDED_BY(mutex_) = false;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_API_SEGMENT_SWITCH_H_
