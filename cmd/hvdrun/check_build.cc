// The abilities of this build on this machine, in the shape people and scripts know. Looks at
// files, and whether the optional libraries can be loaded, those of CUDA among them: no framework
// is imported.
#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>

#include "cmd/hvdrun/verbs.h"
#include "launcher/bundle/install_paths.h"
#include "launcher/bundle/package_sources.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

std::string Line(bool available, std::string_view what) {
  return std::string(available ? "    [X] " : "    [ ] ") + std::string(what) + "\n";
}

// A library may be there while the one that it stands on is not.
bool Loads(const fs::path& library) {
  return ::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr;
}

// The lines that libhvd_cuda.so gives of itself and of this machine; it looks for the driver and
// for NCCL.
std::string GpuLines(const fs::path& library) {
  std::array<char, 4096> text{};
  void* handle = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  auto describe =
      handle == nullptr
          ? nullptr
          : reinterpret_cast<void (*)(char*, size_t)>(::dlsym(handle, "hvd_cuda_describe"));
  if (describe == nullptr) return "    libhvd_cuda.so is not in this build\n";
  describe(text.data(), text.size());
  std::istringstream lines(text.data());
  std::string indented;
  for (std::string line; std::getline(lines, line);) indented += "    " + line + "\n";
  return indented;
}

// True if libhvd_cuda.so finds an NCCL that it can use.
bool HasNccl(const fs::path& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  auto can_load =
      handle == nullptr
          ? nullptr
          : reinterpret_cast<int32_t (*)(const char*)>(::dlsym(handle, "hvd_cuda_can_load"));
  return can_load != nullptr && can_load("nccl") != 0;
}

}  // namespace

std::string CheckBuildText() {
  std::error_code error;
  InstallPaths paths = PathsBeside(OwnPath());
  const fs::path package = PackageSources(paths);
  bool runtime = fs::exists(paths.runtime, error);
  auto binding = [&](const char* folder) {
    // A folder without operations says that it is still to come.
    return runtime && fs::exists(package / folder / "mpi_ops.py", error);
  };
  const fs::path libraries = fs::path(paths.runtime).parent_path();
  const bool mpi = runtime && Loads(libraries / "libhvd_mpi.so");
  const bool gloo = runtime && Loads(libraries / "libhvd_gloo.so");
  return "hvdrun v" HVD_VERSION ":\n\nAvailable Frameworks:\n" +
         Line(binding("tensorflow") && fs::exists(libraries / "libhvd_tf.so", error),
              "TensorFlow") +
         Line(binding("torch"), "PyTorch") + Line(binding("mxnet"), "MXNet") +
         "\nAvailable Controllers:\n" + Line(mpi && !MpirunOnPath().empty(), "MPI") +
         Line(gloo, "Gloo") + Line(runtime, "hvdrun") + "\nAvailable Tensor Operations:\n" +
         Line(runtime && HasNccl(libraries / "libhvd_cuda.so"), "NCCL") + Line(false, "DDL") +
         Line(false, "CCL") + Line(mpi, "MPI") + Line(gloo, "Gloo") +
         Line(runtime, "shared memory") + "\nGPU:\n" + GpuLines(libraries / "libhvd_cuda.so");
}

}  // namespace hvd
