// The size from which an inter-host allreduce is not fused with others.
#ifndef HVD_RUNTIME_BASE_TRAVELS_ALONE_H_
#define HVD_RUNTIME_BASE_TRAVELS_ALONE_H_

#include <cstdint>

namespace hvd {

// An allreduce of this size or more saturates a connection by itself. Fusing it would add a copy
// into and out of the common message, which costs more than the saved message.
constexpr uint64_t kTravelsAloneBytes = 4 << 20;

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_TRAVELS_ALONE_H_
