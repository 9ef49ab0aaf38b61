// NvtxRanges: emits NVTX ranges for a profiler such as Nsight Systems, in a domain "hvdrun".
#ifndef HVD_RUNTIME_BACKENDS_CUDA_NVTX_NVTX_RANGES_H_
#define HVD_RUNTIME_BACKENDS_CUDA_NVTX_NVTX_RANGES_H_

#include <cstdint>
#include <string>

#include "runtime/backends/cuda/nvtx/nvtx_protocol.h"
#include "runtime/base/status.h"

namespace hvd {

class NvtxRanges {
 public:
  // Loads the profiler's library from NVTX_INJECTION64_PATH and attaches to it for good.
  // kUnsupported with the reason, usually that there is no profiler. One thread.
  static Result<NvtxRanges> Load(const std::string& injection);
  // The same once in a process; any thread.
  static Result<const NvtxRanges*> Meet(const std::string& injection);

  // A range may end on another thread. `text` is copied by the profiler.
  nvtx::RangeId Start(const char* text, uint64_t payload) const;
  void End(nvtx::RangeId range) const;

 private:
  nvtx::Domain domain_ = nullptr;
  nvtx::DomainRangeStart start_ = nullptr;
  nvtx::DomainRangeEnd end_ = nullptr;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_NVTX_NVTX_RANGES_H_
