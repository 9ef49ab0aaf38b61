// Copies of host memory between ranks.
#ifndef HVD_RUNTIME_DEVICE_HOST_COPY_H_
#define HVD_RUNTIME_DEVICE_HOST_COPY_H_

#include <cstddef>
#include <cstring>
#include <functional>

namespace hvd {

// CopyRange for 8 KiB and more.
void CopyMuch(void* to, const void* from, size_t bytes);

// As memcpy (`bytes` may be 0; no overlap). Faster than memcpy if another core has just written the
// source or read the target. From any thread.
inline void CopyRange(void* to, const void* from, size_t bytes) {
  constexpr size_t kMuch = 8 << 10;  // from here on memcpy uses `rep movsb`
  if (bytes < kMuch) {
    std::memcpy(to, from, bytes);
  } else {
    CopyMuch(to, from, bytes);
  }
}

// As memmove; uses CopyRange if the ranges do not overlap.
inline void MoveRange(void* to, const void* from, size_t bytes) {
  const auto* first = static_cast<const std::byte*>(from);
  const auto* target = static_cast<std::byte*>(to);
  const bool apart =
      std::less_equal<>{}(target + bytes, first) || std::less_equal<>{}(first + bytes, target);
  if (apart) {
    CopyRange(to, from, bytes);
  } else {
    std::memmove(to, from, bytes);
  }
}

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_HOST_COPY_H_
