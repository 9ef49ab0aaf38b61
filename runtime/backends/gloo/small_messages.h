// The slot and the length limit of small messages between leaders.
#ifndef HVD_RUNTIME_BACKENDS_GLOO_SMALL_MESSAGES_H_
#define HVD_RUNTIME_BACKENDS_GLOO_SMALL_MESSAGES_H_

#include <cstddef>
#include <cstdint>

#include "runtime/backends/inter_host_comm.h"
#include "runtime/base/status.h"
#include "runtime/base/text/format.h"

namespace hvd {

// Distinct from the slots of the collectives.
inline constexpr uint64_t kMessageSlot = uint64_t{0x50} << 56;

// Refuses a message that is too long.
inline Status CheckMessage(size_t bytes) {
  if (bytes <= kMaxInterHostMessage) return Status::Ok();
  return InvalidArgument(
      Format("a small message of {} bytes; at most {} are allowed", bytes, kMaxInterHostMessage));
}

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_GLOO_SMALL_MESSAGES_H_
