// Finds the CUDA driver of this machine: libcuda.so.1, which comes with NVIDIA's driver and not
// with CUDA. Nothing here is linked with it.
#ifndef HVD_RUNTIME_DEVICE_CUDA_DRIVER_LOADER_H_
#define HVD_RUNTIME_DEVICE_CUDA_DRIVER_LOADER_H_

#include <string>

#include "runtime/base/status.h"
#include "runtime/device/cuda/driver_api.h"

namespace hvd {

// All entries by name. kUnsupported names every symbol that `library` lacks.
Result<CudaDriver> FillCudaDriver(const std::string& library, const FindSymbol& find);

// The calls for CUDA graphs that the driver lacks: "cuGraphLaunch"; "" when all are there.
std::string MissingGraphCalls(CudaDriver driver);

// Initialises the driver and asks for its devices. Nothing is left to undo. kUnsupported with the
// reason, which is that there is no GPU in most cases.
Status StartCudaDriver(const CudaDriver& driver);

// Loads `library` and does not start it; it is never unloaded.
Result<CudaDriver> FindCudaDriver(const std::string& library = "libcuda.so.1");

// Loads `library` and starts it; it is never unloaded.
Result<CudaDriver> LoadCudaDriver(const std::string& library = "libcuda.so.1");

// "CUDA 13.0"; the newest that the driver can run, not the installed one.
std::string CudaDriverVersion(const CudaDriver& driver);

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_DRIVER_LOADER_H_
