// The facts about the GPUs of a process set on several hosts: a member publishes them to its own
// host in shared memory, and the host sends them to the others in a note.
#ifndef HVD_RUNTIME_BACKENDS_CUDA_HOST_NOTE_H_
#define HVD_RUNTIME_BACKENDS_CUDA_HOST_NOTE_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/device/shared_heap.h"

namespace hvd {

// In registered memory of the member, at LeaseDescriptor::data of its descriptor. Written before
// the member announces the operation.
struct HostsFacts {
  int32_t nccl_version = 0;        // 0: it has none
  int32_t compute_capability = 0;  // 90 for sm_90
  uint64_t place = 0;              // of its GPU on the host
  Location control;                // of its lease, with a CudaCell
  uint32_t refusal_bytes = 0;      // not 0: why it cannot take part; then all else is unused
  std::array<char, 980> refusal;

  void Refuse(std::string_view why) {
    refusal_bytes = static_cast<uint32_t>(std::min(why.size(), refusal.size()));
    std::copy_n(why.begin(), refusal_bytes, refusal.begin());
  }
  std::string Refused() const { return {refusal.data(), refusal_bytes}; }
};

struct HostNote {
  bool refuses = false;  // a member cannot take part at all; `why` says why
  int32_t nccl_version = 0;
  int32_t compute_capability = 0;  // the least
  uint64_t places = 0;             // a hash of its members' GPUs
  std::string why;                 // why NCCL cannot serve its members; "": it can
};

// Never empty.
std::string EncodeHostNote(const HostNote& note);
Result<HostNote> DecodeHostNote(std::string_view bytes);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_HOST_NOTE_H_
