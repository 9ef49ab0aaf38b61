// Loads the CUDA driver library, libcuda.so.1, which comes with NVIDIA's driver, not with CUDA.
// Nothing here is linked with it.
#ifndef HVD_RUNTIME_DEVICE_CUDA_DRIVER_LOADER_H_
#define HVD_RUNTIME_DEVICE_CUDA_DRIVER_LOADER_H_

#include <string>

#include "runtime/base/status.h"
#include "runtime/device/cuda/driver_api.h"

namespace hvd {

// Resolves all entries by name. kUnsupported names every symbol that `library` lacks.
Result<CudaDriver> FillCudaDriver(const std::string& library, const FindSymbol& find);

// The graph calls that the driver lacks, e.g. "cuGraphLaunch"; "" if it has all.
std::string MissingGraphCalls(CudaDriver driver);

// Initialises the driver and checks for devices. Needs no cleanup. kUnsupported with the reason,
// usually that there is no GPU.
Status StartCudaDriver(const CudaDriver& driver);

// Loads `library` without initialising it; never unloaded.
Result<CudaDriver> FindCudaDriver(const std::string& library = "libcuda.so.1");

// Loads `library` and initialises it; never unloaded.
Result<CudaDriver> LoadCudaDriver(const std::string& library = "libcuda.so.1");

// "CUDA 13.0": the newest version that the driver supports, not the installed one.
std::string CudaDriverVersion(const CudaDriver& driver);

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_DRIVER_LOADER_H_
