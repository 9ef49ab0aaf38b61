// Rounding sizes up to a boundary.
#ifndef HVD_RUNTIME_BASE_ALIGN_H_
#define HVD_RUNTIME_BASE_ALIGN_H_

#include <cstdint>

namespace hvd {

// The smallest multiple of `to` (> 0) that is at least `n`; wraps if n + to - 1 overflows.
constexpr uint64_t RoundUp(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_ALIGN_H_
