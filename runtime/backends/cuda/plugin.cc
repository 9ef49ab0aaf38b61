// The functions that libhvd_cuda.so exports.
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include "runtime/backends/cuda/cuda_backend.h"
#include "runtime/backends/cuda/cuda_description.h"
#include "runtime/backends/cuda/cuda_plugin.h"
#include "runtime/backends/cuda/ranged_backend.h"
#include "runtime/backends/nccl/nccl_loader.h"
#include "runtime/backends/plugin_interface.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/driver_loader.h"
#include "runtime/device/cuda/kernels_image.h"
#include "runtime/device/cuda/nvrtc/kernel_compiler.h"

#define HVD_CUDA_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

hvd::CudaKernels KernelsOfThisBuild() { return {hvd_kernels_image, hvd::KernelsForCapability}; }

}  // namespace

HVD_CUDA_EXPORT const char* hvd_plugin_interface() { return hvd::PluginInterface(); }

HVD_CUDA_EXPORT void hvd_cuda_describe(char* text, size_t bytes) {
  std::snprintf(
      text, bytes, "%s",
      hvd::DescribeCuda(HVD_CUDA_ARCHITECTURES, hvd::LoadCudaDriver(), hvd::LoadNccl()).c_str());
}

HVD_CUDA_EXPORT hvd::Device* hvd_cuda_open_device(uint32_t rank, int ordinal, hvd::Status* status) {
  const hvd::Result<hvd::CudaDriver> driver = hvd::LoadCudaDriver();
  if (!driver.ok()) {
    *status = driver.status();
    return nullptr;
  }
  hvd::Result<std::unique_ptr<hvd::CudaDevice>> device = hvd::CudaDevice::Open(
      *driver, {.rank = rank, .ordinal = ordinal, .kernels = KernelsOfThisBuild()});
  if (device.ok()) return (*device).release();
  *status = device.status();
  return nullptr;
}

HVD_CUDA_EXPORT hvd::DeviceBackend* hvd_cuda_open_backend(const hvd::CudaBackendOptions* options,
                                                          hvd::Status* status) {
  hvd::Result<hvd::CudaDriver> driver = hvd::LoadCudaDriver();
  if (!driver.ok()) {
    *status = driver.status();
    return nullptr;
  }
  hvd::CudaParts parts{*driver, hvd::LoadNccl(), KernelsOfThisBuild()};
  auto backend = std::make_unique<hvd::CudaBackend>(std::move(parts), *options);
  return options->ranges ? hvd::WithRanges(std::move(backend), *options).release()
                         : backend.release();
}

HVD_CUDA_EXPORT int32_t hvd_cuda_can_load(const char* what) {
  if (!hvd::FindCudaDriver().ok()) return 0;
  if (std::string_view(what) != "nccl") return 1;
  const hvd::Result<hvd::NcclLibrary> nccl = hvd::LoadNccl();
  return nccl.ok() ? nccl->version : 0;
}
