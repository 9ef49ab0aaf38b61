// Finds NVRTC: the copy in the process, the framework's or the system's. It is not part of the
// build and is needed only if a driver rejects the kernels compiled by nvcc.
#ifndef HVD_RUNTIME_DEVICE_CUDA_NVRTC_NVRTC_LOADER_H_
#define HVD_RUNTIME_DEVICE_CUDA_NVRTC_NVRTC_LOADER_H_

#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/cuda/nvrtc/nvrtc_api.h"

namespace hvd {

// Library names, newest CUDA first.
inline constexpr const char* kNvrtcNames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

// Where wheels install it, relative to the libraries that the process has mapped: beside them, and
// in the folders "cu13" and "cuda_nvrtc" of the "nvidia" wheels. Without duplicates, in the order
// to try; the plain library names, for the loader's own search, come last. Pure.
std::vector<std::string> NvrtcCandidates(std::span<const std::string> mapped);

// Resolves all entries by name. kUnsupported names every symbol that `path` lacks.
Result<NvrtcLibrary> FillNvrtc(const std::string& path, const FindSymbol& find);

// Loads the first candidate that works; never unloaded. kUnsupported with the reason.
Result<NvrtcLibrary> LoadNvrtcFrom(std::span<const std::string> candidates);
// From the libraries that this process has mapped.
Result<NvrtcLibrary> LoadNvrtc();

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_NVRTC_NVRTC_LOADER_H_
