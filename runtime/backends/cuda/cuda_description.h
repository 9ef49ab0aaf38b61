// The lines of hvdrun --check-build about CUDA.
#ifndef HVD_RUNTIME_BACKENDS_CUDA_CUDA_DESCRIPTION_H_
#define HVD_RUNTIME_BACKENDS_CUDA_CUDA_DESCRIPTION_H_

#include <string>
#include <string_view>

#include "runtime/backends/nccl/nccl_loader.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/driver_api.h"

namespace hvd {

// Three lines: kernels, driver with its devices, NCCL; each with the reason if unusable.
// `architectures`: "75 80", those that the kernels were compiled for.
std::string DescribeCuda(std::string_view architectures, const Result<CudaDriver>& driver,
                         const Result<NcclLibrary>& nccl);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_CUDA_DESCRIPTION_H_
