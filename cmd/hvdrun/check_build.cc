// What this build can do, in the shape people and scripts know. Looks at files, and whether the
// optional libraries can be loaded: no framework is imported.
#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "cmd/hvdrun/verbs.h"
#include "launcher/bundle/install_paths.h"

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

}  // namespace

std::string CheckBuildText() {
  std::error_code error;
  InstallPaths paths = PathsBeside(OwnPath());
  bool runtime = fs::exists(paths.runtime, error);
  auto binding = [&](const char* folder) {
    // A folder without operations says that it is still to come.
    return runtime && fs::exists(fs::path(paths.python) / "horovod" / folder / "mpi_ops.py", error);
  };
  const fs::path libraries = fs::path(paths.runtime).parent_path();
  const bool mpi = runtime && Loads(libraries / "libhvd_mpi.so");
  const bool gloo = runtime && Loads(libraries / "libhvd_gloo.so");
  return "hvdrun v" HVD_VERSION ":\n\nAvailable Frameworks:\n" +
         Line(binding("tensorflow"), "TensorFlow") + Line(binding("torch"), "PyTorch") +
         Line(binding("mxnet"), "MXNet") + "\nAvailable Controllers:\n" + Line(mpi, "MPI") +
         Line(gloo, "Gloo") + Line(runtime, "hvdrun") + "\nAvailable Tensor Operations:\n" +
         Line(false, "NCCL") + Line(false, "DDL") + Line(false, "CCL") + Line(mpi, "MPI") +
         Line(gloo, "Gloo") + Line(runtime, "shared memory");
}

}  // namespace hvd
