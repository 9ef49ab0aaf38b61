// hvdrun --check-build: the features of this build on this machine, in the format of horovodrun.
// Checks files and whether the optional libraries load, including those of CUDA; imports no
// framework.
#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/hvdrun/verbs.h"
#include "launcher/channels/bundle/install_paths.h"
#include "runtime/trace/chrome_text.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

struct Ability {
  const char *name, *key;  // in the text, and in JSON
  bool available = false;
};
struct Abilities {
  std::vector<Ability> frameworks, controllers, operations;
  std::string gpu;  // lines
};

std::string Lines(const char* title, const std::vector<Ability>& abilities) {
  std::string text = std::string("\nAvailable ") + title + ":\n";
  for (const Ability& ability : abilities)
    text += std::string(ability.available ? "    [X] " : "    [ ] ") + ability.name + "\n";
  return text;
}

std::string Json(const std::vector<Ability>& abilities) {
  std::string text;
  for (const Ability& ability : abilities) {
    text += (text.empty() ? "{" : ", ") + JsonText(ability.key) + ": " +
            (ability.available ? "true" : "false");
  }
  return text + "}";
}

// A library may exist while one that it needs does not.
bool Loads(const fs::path& library) {
  return ::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr;
}

// The lines of libhvd_cuda.so about itself and this machine; it looks for the driver and NCCL.
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

Abilities FindAbilities() {
  std::error_code error;
  InstallPaths paths = PathsBeside(OwnPath());
  const fs::path package = PackageSources(paths);
  const bool runtime = fs::exists(paths.runtime, error);
  auto binding = [&](const char* folder) {
    // A folder without operations is a placeholder.
    return runtime && fs::exists(package / folder / "mpi_ops.py", error);
  };
  const fs::path libraries = fs::path(paths.runtime).parent_path();
  const bool mpi = runtime && Loads(libraries / "libhvd_mpi.so");
  const bool gloo = runtime && Loads(libraries / "libhvd_gloo.so");
  const bool tensorflow = binding("tensorflow") && fs::exists(libraries / "libhvd_tf.so", error);
  return {.frameworks = {{"TensorFlow", "tensorflow", tensorflow},
                         {"PyTorch", "torch", binding("torch")},
                         {"MXNet", "mxnet", binding("mxnet")}},
          .controllers = {{"MPI", "mpi", mpi && !MpirunOnPath().empty()},
                          {"Gloo", "gloo", gloo},
                          {"hvdrun", "hvdrun", runtime}},
          .operations = {{"NCCL", "nccl", runtime && HasNccl(libraries / "libhvd_cuda.so")},
                         {"DDL", "ddl", false},
                         {"CCL", "ccl", false},
                         {"MPI", "mpi", mpi},
                         {"Gloo", "gloo", gloo},
                         {"shared memory", "shared_memory", runtime}},
          .gpu = GpuLines(libraries / "libhvd_cuda.so")};
}

}  // namespace

std::string CheckBuildText() {
  const Abilities found = FindAbilities();
  return "hvdrun v" HVD_VERSION ":\n" + Lines("Frameworks", found.frameworks) +
         Lines("Controllers", found.controllers) + Lines("Tensor Operations", found.operations) +
         "\nGPU:\n" + found.gpu;
}

std::string CheckBuildJson() {
  const Abilities found = FindAbilities();
  std::istringstream lines(found.gpu);
  std::string gpu;
  for (std::string line; std::getline(lines >> std::ws, line);)
    gpu += (gpu.empty() ? "" : ", ") + JsonText(line);
  return "{\"version\": " + JsonText(HVD_VERSION) + ", \"frameworks\": " + Json(found.frameworks) +
         ", \"controllers\": " + Json(found.controllers) +
         ", \"operations\": " + Json(found.operations) + ", \"gpu\": [" + gpu + "]}\n";
}

std::string ConfigJson(std::span<const SettingOrigin> settings) {
  constexpr size_t kWhole = SIZE_MAX;
  std::string text;
  for (const SettingOrigin& setting : settings) {
    text += (text.empty() ? "{" : ",\n ") + JsonText(setting.name) +
            ": {\"value\": " + (setting.value.empty() ? "null" : JsonText(setting.value, kWhole)) +
            ", \"from\": " + JsonText(setting.origin, kWhole) + "}";
  }
  return text + "}\n";
}

}  // namespace hvd
