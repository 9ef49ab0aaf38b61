// Memory of a trace ring for tests: zeroed and aligned like a page.
#ifndef HVD_TEST_UNIT_TRACE_RING_MEMORY_H_
#define HVD_TEST_UNIT_TRACE_RING_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "runtime/trace/ring.h"

namespace hvd {

class RingMemory {
 public:
  explicit RingMemory(uint64_t records)
      : bytes_((TraceRing::BytesFor(records) + 4095) / 4096 * 4096),
        used_(TraceRing::BytesFor(records)),
        memory_(static_cast<std::byte*>(std::aligned_alloc(4096, bytes_)), &std::free) {
    std::memset(memory_.get(), 0, bytes_);
  }
  std::span<std::byte> span() const { return {memory_.get(), used_}; }

 private:
  size_t bytes_, used_;
  std::unique_ptr<std::byte, void (*)(void*)> memory_;
};

}  // namespace hvd

#endif  // HVD_TEST_UNIT_TRACE_RING_MEMORY_H_
