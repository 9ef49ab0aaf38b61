// Finds NVRTC: the copy that the process has, that of the framework, or the system's. It is no part
// of the build, and is looked for only where a driver refuses the kernels that nvcc made.
#ifndef HVD_RUNTIME_DEVICE_CUDA_NVRTC_NVRTC_LOADER_H_
#define HVD_RUNTIME_DEVICE_CUDA_NVRTC_NVRTC_LOADER_H_

#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/cuda/nvrtc/nvrtc_api.h"

namespace hvd {

// The library by its names; the newest CUDA first.
inline constexpr const char* kNvrtcNames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

// Where wheels lay it, seen from the paths of libraries that the process has mapped: beside them,
// and in the folders "cu13", "cuda_nvrtc" of the wheels "nvidia". Each path once, in the order in
// which they are to be tried; the libraries' plain names, for the loader's own search, are last.
// Pure.
std::vector<std::string> NvrtcCandidates(std::span<const std::string> mapped);

// All entries by name. kUnsupported names every symbol that `path` lacks.
Result<NvrtcLibrary> FillNvrtc(const std::string& path, const FindSymbol& find);

// The first of the candidates that loads; it is never unloaded. kUnsupported with the reason.
Result<NvrtcLibrary> LoadNvrtcFrom(std::span<const std::string> candidates);
// By what this process has mapped.
Result<NvrtcLibrary> LoadNvrtc();

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_NVRTC_NVRTC_LOADER_H_
