// When a sum between hosts is too large to share a message with others.
#ifndef HVD_RUNTIME_BASE_TRAVELS_ALONE_H_
#define HVD_RUNTIME_BASE_TRAVELS_ALONE_H_

#include <cstdint>

namespace hvd {

// A sum of so many bytes or more keeps a connection busy by itself. Fused with others, it would be
// copied into one message and out of it, which costs more than the message that is saved.
constexpr uint64_t kTravelsAloneBytes = 4 << 20;

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_TRAVELS_ALONE_H_
