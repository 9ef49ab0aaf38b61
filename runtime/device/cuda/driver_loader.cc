#include "runtime/device/cuda/driver_loader.h"

#include <dlfcn.h>

#include "runtime/base/loading/library_dir.h"
#include "runtime/base/text/format.h"
#include "runtime/device/cuda/cuda_calls.h"

namespace hvd {
namespace {

constexpr char kUnusable[] = "CUDA cannot be used because ";

}  // namespace

Result<CudaDriver> FillCudaDriver(const std::string& library, const FindSymbol& find) {
  CudaDriver driver;
  EntryFiller fill(find);
  ForEachEntry(driver, fill);
  EntryFiller fill_graphs(find);
  ForEachGraphEntry(driver, fill_graphs);
  if (fill.missing().empty()) return driver;
  return Unsupported(kUnusable + library + " has no " + fill.missing() +
                     ": the driver is too old; install one for CUDA 12 or newer");
}

std::string MissingGraphCalls(CudaDriver driver) {
  std::string missing;
  ForEachGraphEntry(driver, [&](const auto& entry) {
    if (!entry) missing += (missing.empty() ? "" : ", ") + std::string(entry.symbol);
  });
  return missing;
}

Status StartCudaDriver(const CudaDriver& driver) {
  if (CuResult result = driver.init(0); result != kCudaSuccess) {
    return Unsupported(kUnusable + std::string("the driver does not start: ") +
                       CudaFailureText(driver, driver.init.symbol, result));
  }
  int count = 0;
  if (CuResult result = driver.device_get_count(&count); result != kCudaSuccess) {
    return Unsupported(kUnusable + std::string("the driver does not tell its devices: ") +
                       CudaFailureText(driver, driver.device_get_count.symbol, result));
  }
  if (count > 0) return Status::Ok();
  return Unsupported(kUnusable + std::string("the driver sees no GPU; look at nvidia-smi and at "
                                             "CUDA_VISIBLE_DEVICES"));
}

Result<CudaDriver> FindCudaDriver(const std::string& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Unsupported(kUnusable + library + " cannot be loaded: " + LoaderError() +
                       "; it comes with NVIDIA's driver");
  }
  return FillCudaDriver(library, [handle](const char* symbol) { return ::dlsym(handle, symbol); });
}

Result<CudaDriver> LoadCudaDriver(const std::string& library) {
  Result<CudaDriver> driver = FindCudaDriver(library);
  if (!driver.ok()) return driver;
  HVD_RETURN_IF_ERROR(StartCudaDriver(*driver));
  return driver;
}

std::string CudaDriverVersion(const CudaDriver& driver) {
  int version = 0;
  if (driver.driver_get_version(&version) != kCudaSuccess) return "CUDA of an unknown version";
  return Format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace hvd
