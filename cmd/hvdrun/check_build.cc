// What this build can do, in the shape people and scripts know. Looks at files only: no framework is imported.
#include <filesystem>
#include <string>
#include <string_view>

#include "cmd/hvdrun/verbs.h"
#include "launcher/worker_env.h"

namespace hvd {
namespace {

std::string Line(bool available, std::string_view what) {
  return std::string(available ? "    [X] " : "    [ ] ") + std::string(what) + "\n";
}

}  // namespace

std::string CheckBuildText() {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path self = fs::read_symlink("/proc/self/exe", error);
  InstallPaths paths = PathsBeside(self.string());
  bool runtime = fs::exists(paths.runtime, error);
  auto binding = [&](const char* folder) {
    return runtime &&
           fs::exists(fs::path(paths.python) / "horovod" / folder / "__init__.py", error);
  };
  return "hvdrun v" HVD_VERSION ":\n\nAvailable Frameworks:\n" +
         Line(binding("tensorflow"), "TensorFlow") + Line(binding("torch"), "PyTorch") +
         Line(binding("mxnet"), "MXNet") + "\nAvailable Controllers:\n" + Line(false, "MPI") +
         Line(false, "Gloo") + Line(runtime, "hvdrun") + "\nAvailable Tensor Operations:\n" +
         Line(false, "NCCL") + Line(false, "DDL") + Line(false, "CCL") + Line(false, "MPI") +
         Line(false, "Gloo") + Line(runtime, "shared memory");
}

}  // namespace hvd
