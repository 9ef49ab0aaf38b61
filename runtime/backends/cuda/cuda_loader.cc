#include "runtime/backends/cuda/cuda_plugin.h"
#include "runtime/backends/plugin_interface.h"

namespace hvd {

Result<CudaPlugin> LoadCudaPlugin(const std::string& folder) {
  const Plugin library = {.library = "libhvd_cuda.so",
                          .lacks = "CUDA cannot be used",
                          .built_by = "without CUDA; build it where nvcc is, with HVD_WITH_CUDA=ON",
                          .remedy = ""};  // it is linked with neither CUDA nor NCCL
  const char* const names[] = {kCudaOpenDeviceName, kCudaOpenBackendName, kCudaCanLoadName};
  const Result<std::vector<void*>> functions = LoadPlugin(library, names, folder);
  if (!functions.ok()) return functions.status();
  CudaPlugin plugin;
  plugin.open_device = reinterpret_cast<CudaPlugin::OpenDevice>((*functions)[0]);
  plugin.open_backend = reinterpret_cast<CudaPlugin::OpenBackend>((*functions)[1]);
  plugin.can_load = reinterpret_cast<CudaPlugin::CanLoad>((*functions)[2]);
  return plugin;
}

}  // namespace hvd
