// Converts an NCCL result to a Status: its code, and a message with the rank, the device, the call,
// NCCL's text and a remedy. Pure except for querying NCCL's text.
#ifndef HVD_RUNTIME_BACKENDS_NCCL_NCCL_CALLS_H_
#define HVD_RUNTIME_BACKENDS_NCCL_NCCL_CALLS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/backends/nccl/nccl_api.h"
#include "runtime/base/status.h"

namespace hvd {

// A member of a process set, for messages and for NCCL, whose ranks are the indices.
struct NcclMember {
  uint32_t rank = 0;          // in the world
  uint32_t index = 0;         // in the process set: below `size`
  uint32_t size = 1;          // of the process set, at least 1
  std::string set = "world";  // "world", "process set 2"
  std::string device;         // "CUDA device 1 (NVIDIA H200, sm_90)"
};

// "rank 3 on CUDA device 1 (member 1 of 4 of process set 2)"
std::string NameOf(const NcclMember& member);

// kAborted if another rank or the network may have caused it, kUnsupported if the machine cannot do
// it, kInternal otherwise.
Code CodeOfNcclError(NcclResult result);

// The result of one call. `symbol` is null if no call was made.
struct NcclAnswer {
  const char* symbol = nullptr;
  NcclResult result = kNcclSuccess;

  bool failed() const { return result != kNcclSuccess && result != kNcclInProgress; }
};

// The Status of a failed call. `comm` may be null.
Status NcclFailure(const NcclApi& api, const NcclMember& member, const NcclAnswer& answer,
                   NcclCommHandle comm);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_NCCL_NCCL_CALLS_H_
