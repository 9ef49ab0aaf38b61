#include <dlfcn.h>
#include <unistd.h>

#include "runtime/backends/cuda/cuda_plugin.h"
#include "runtime/backends/plugin_interface.h"
#include "runtime/base/loading/library_dir.h"

namespace hvd {
namespace {

constexpr char kLibrary[] = "libhvd_cuda.so";

}  // namespace

Result<CudaPlugin> LoadCudaPlugin(const std::string& folder) {
  const std::string path = LibraryPath(kLibrary, folder);
  if (::access(path.c_str(), F_OK) != 0) {
    return Unsupported("CUDA cannot be used because there is no " + path +
                       ": this hvdrun was built without CUDA; build it where nvcc is, with "
                       "HVD_WITH_CUDA=ON");
  }
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Unsupported("CUDA cannot be used because " + std::string(kLibrary) +
                       " cannot be loaded: " + LoaderError());
  }
  if (Status status = AdmitPlugin(library, path); !status.ok()) {
    return Unsupported("CUDA cannot be used because " + status.message());
  }
  CudaPlugin plugin;
  plugin.open_device =
      reinterpret_cast<CudaPlugin::OpenDevice>(::dlsym(library, kCudaOpenDeviceName));
  plugin.open_backend =
      reinterpret_cast<CudaPlugin::OpenBackend>(::dlsym(library, kCudaOpenBackendName));
  plugin.can_load = reinterpret_cast<CudaPlugin::CanLoad>(::dlsym(library, kCudaCanLoadName));
  if (plugin.open_device == nullptr || plugin.open_backend == nullptr ||
      plugin.can_load == nullptr) {
    return Unsupported("CUDA cannot be used because " + path +
                       " is not of this version of hvdrun; install both from one build");
  }
  return plugin;
}

}  // namespace hvd
