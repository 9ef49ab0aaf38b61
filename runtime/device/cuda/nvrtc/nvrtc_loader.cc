#include "runtime/device/cuda/nvrtc/nvrtc_loader.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "runtime/base/loading/library_dir.h"

namespace hvd {
namespace {

constexpr char kCannotCompile[] = "NVRTC cannot compile the kernels for it because ";
constexpr std::string_view kWheels = "/nvidia/";

void AddOnce(std::vector<std::string>& candidates, std::string path) {
  if (std::ranges::find(candidates, path) == candidates.end())
    candidates.push_back(std::move(path));
}

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::vector<std::string> MappedLibraries() {
  std::vector<std::string> paths;
  const auto add = [](dl_phdr_info* info, size_t, void* list) {
    const std::string path = info->dlpi_name;
    if (path.find('/') != std::string::npos)
      static_cast<std::vector<std::string>*>(list)->push_back(path);
    return 0;
  };
  ::dl_iterate_phdr(add, &paths);
  return paths;
}

}  // namespace

std::vector<std::string> NvrtcCandidates(std::span<const std::string> mapped) {
  std::vector<std::string> candidates;
  for (const std::string& path : mapped) {  // the copy that the process has mapped
    for (const char* name : kNvrtcNames) {
      if (path.ends_with(std::string("/") + name)) AddOnce(candidates, path);
    }
  }
  for (const std::string& path : mapped) {
    const size_t wheels = path.rfind(kWheels);
    if (wheels == std::string::npos) continue;
    const std::string root = path.substr(0, wheels + kWheels.size());
    AddOnce(candidates, root + "cu13/lib/libnvrtc.so.13");
    AddOnce(candidates, root + "cuda_nvrtc/lib/libnvrtc.so.12");
  }
  for (const std::string& path : mapped) {  // a framework that has all its libraries in one folder
    if (path.find("/libtorch") == std::string::npos && path.find("/libcudart") == std::string::npos)
      continue;
    for (const char* name : kNvrtcNames) AddOnce(candidates, FolderOf(path) + "/" + name);
  }
  for (const char* name : kNvrtcNames) AddOnce(candidates, name);
  return candidates;
}

Result<NvrtcLibrary> FillNvrtc(const std::string& path, const FindSymbol& find) {
  NvrtcLibrary library;
  library.path = path;
  EntryFiller fill(find);
  ForEachEntry(library.api, fill);
  if (fill.missing().empty()) return library;
  return Unsupported(kCannotCompile + path + " has no " + fill.missing() +
                     ": install that of CUDA 12 or newer");
}

Result<NvrtcLibrary> LoadNvrtcFrom(std::span<const std::string> candidates) {
  std::string reasons;
  for (const std::string& path : candidates) {
    const bool plain = path.find('/') == std::string::npos;
    if (!plain && ::access(path.c_str(), F_OK) != 0) continue;
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr)
      return FillNvrtc(path, [handle](const char* symbol) { return ::dlsym(handle, symbol); });
    reasons += (reasons.empty() ? "" : "; ") + LoaderError();
  }
  return Unsupported(kCannotCompile + std::string("there is no NVRTC: ") + reasons +
                     "; frameworks with CUDA bring it, and NVIDIA's packages have it");
}

Result<NvrtcLibrary> LoadNvrtc() { return LoadNvrtcFrom(NvrtcCandidates(MappedLibraries())); }

}  // namespace hvd
