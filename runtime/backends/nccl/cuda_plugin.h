// What libhvd_cuda.so exports, and how it is loaded: only when somebody asks about CUDA. The
// library is never unloaded.
#ifndef HVD_RUNTIME_BACKENDS_NCCL_CUDA_PLUGIN_H_
#define HVD_RUNTIME_BACKENDS_NCCL_CUDA_PLUGIN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "runtime/device/device.h"

namespace hvd {

struct CudaPlugin {
  // Starts the driver and opens a device that the process sees. Null: `status` says why.
  using OpenDevice = Device* (*)(uint32_t rank, int ordinal, Status* status);

  OpenDevice open_device = nullptr;
};

inline constexpr char kCudaOpenDeviceName[] = "hvd_cuda_open_device";

// In plain C, also for programs of another build: lines about kernels, driver and NCCL, cut after
// `bytes`. What it says is the truth of this machine, so driver and NCCL are loaded.
using CudaDescribe = void (*)(char* text, size_t bytes);
inline constexpr char kCudaDescribeName[] = "hvd_cuda_describe";

// Loads libhvd_cuda.so from `folder`, or from the folder of the object that holds this function.
// kUnsupported with the reason when it is not there or of another build.
Result<CudaPlugin> LoadCudaPlugin(const std::string& folder = "");

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_NCCL_CUDA_PLUGIN_H_
