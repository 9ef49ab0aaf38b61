// The functions that libhvd_cuda.so exports, and how it is loaded: only for queries about CUDA, or
// when a tensor on a GPU is submitted. Never unloaded.
#ifndef HVD_RUNTIME_BACKENDS_CUDA_CUDA_PLUGIN_H_
#define HVD_RUNTIME_BACKENDS_CUDA_CUDA_PLUGIN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/backends/cuda/cuda_backend_options.h"
#include "runtime/base/status.h"
#include "runtime/device/device.h"

namespace hvd {

struct CudaPlugin {
  // Starts the driver and opens a device visible to the process. Null: `status` says why.
  using OpenDevice = Device* (*)(uint32_t rank, int ordinal, Status* status);
  // Starts the driver and looks for NCCL, which is optional.
  using OpenBackend = DeviceBackend* (*)(const CudaBackendOptions* options, Status* status);
  // Not 0 if the driver can be loaded ("cuda"), or driver and NCCL ("nccl": its version, as 22809
  // for 2.28.9). Starts neither: a process forked later could not use them.
  using CanLoad = int32_t (*)(const char* what);

  OpenDevice open_device = nullptr;
  OpenBackend open_backend = nullptr;
  CanLoad can_load = nullptr;
};

inline constexpr char kCudaOpenDeviceName[] = "hvd_cuda_open_device";
inline constexpr char kCudaOpenBackendName[] = "hvd_cuda_open_backend";
inline constexpr char kCudaCanLoadName[] = "hvd_cuda_can_load";

// In plain C, also for programs of another build: lines about kernels, driver and NCCL, truncated
// to `bytes`. Loads driver and NCCL to describe this machine as it is.
using CudaDescribe = void (*)(char* text, size_t bytes);
inline constexpr char kCudaDescribeName[] = "hvd_cuda_describe";

// Loads libhvd_cuda.so from `folder`, or from the folder of the object that holds this function.
// kUnsupported with the reason if it is missing or of another build.
Result<CudaPlugin> LoadCudaPlugin(const std::string& folder = "");

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_CUDA_PLUGIN_H_
