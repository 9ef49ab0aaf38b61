// How work and rows are divided: pure functions of the sizes, so that every rank divides alike.
#ifndef HVD_RUNTIME_BACKENDS_SHM_CHUNKING_H_
#define HVD_RUNTIME_BACKENDS_SHM_CHUNKING_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/base/align.h"
#include "runtime/segment/job_page.h"

namespace hvd {

struct ElementRange {
  size_t first = 0;
  size_t count = 0;
};

// An allreduce: one slice of elements per lane, each slice in chunks.
class Chunking {
 public:
  static constexpr size_t kChunksPerSlice = 4;
  static constexpr size_t kSmallestChunk = 8 << 10;
  static constexpr size_t kLargestChunk = 128 << 10;

  // At most kChunksPerSlice chunks in a slice if `largest_chunk` allows.
  Chunking(size_t count, size_t element_bytes, uint32_t lanes, size_t largest_chunk = kLargestChunk)
      : count_(count) {
    const size_t line = kCacheLine / element_bytes;
    slice_ = RoundUp((count + lanes - 1) / lanes, line);
    const size_t chunk_bytes =
        std::clamp(slice_ * element_bytes / kChunksPerSlice, kSmallestChunk, largest_chunk);
    chunk_ = RoundUp(chunk_bytes / element_bytes, line);
  }

  size_t first_of(uint32_t lane) const { return std::min(count_, lane * slice_); }
  uint32_t chunks_of(uint32_t lane) const {
    size_t elements = first_of(lane + 1) - first_of(lane);
    return static_cast<uint32_t>((elements + chunk_ - 1) / chunk_);
  }
  ElementRange chunk(uint32_t lane, uint32_t index) const {
    size_t first = first_of(lane) + index * chunk_;
    return {first, std::min(chunk_, first_of(lane + 1) - first)};
  }

 private:
  size_t count_, slice_, chunk_;
};

// Rows of a reducescatter: the first rows % members members get one more.
struct RowRange {
  int64_t first = 0;
  int64_t count = 0;
};
constexpr RowRange RowsOf(uint32_t member, int64_t rows, uint32_t members) {
  const int64_t each = rows / members, more = rows % members;
  return {member * each + std::min<int64_t>(member, more), each + (member < more ? 1 : 0)};
}

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_SHM_CHUNKING_H_
