// How a member that cannot do an operation on a GPU announces it: a descriptor with the message as
// its payload, so that all members fail alike and none waits; and how it fails later. Pure
// functions.
#ifndef HVD_RUNTIME_BACKENDS_CUDA_REFUSAL_H_
#define HVD_RUNTIME_BACKENDS_CUDA_REFUSAL_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/backends/backend.h"
#include "runtime/base/status.h"
#include "runtime/base/text/format.h"

namespace hvd {

inline std::string Refusal(uint32_t rank, const Status& why) {
  return Format("rank {} cannot take part with a tensor on a GPU: {}", rank, why.message());
}

// An error of this rank alone, unknown to the others: with a code for which the engine ends the
// world.
inline Status OfThisRank(const Status& why) {
  const bool shared = why.code() == Code::kUnsupported || why.code() == Code::kInvalidArgument;
  return shared ? Aborted(why.message()) : why;
}

// A view of `refusal`.
inline BufferDescriptor DescriptorOfRefusal(const std::string& refusal) {
  BufferDescriptor descriptor;
  descriptor.payload = std::as_bytes(std::span(refusal));
  return descriptor;
}

// kUnsupported with the message of the first member that refuses, the same on all members.
inline Status FirstRefusal(std::span<const BufferDescriptor> descriptors) {
  for (const BufferDescriptor& descriptor : descriptors) {
    if (descriptor.payload.empty()) continue;
    return Unsupported(
        {reinterpret_cast<const char*>(descriptor.payload.data()), descriptor.payload.size()});
  }
  return Status::Ok();
}

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_REFUSAL_H_
