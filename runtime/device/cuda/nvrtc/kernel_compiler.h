// Compiles kernels.cu on the machine where it runs, by NVRTC, for one kind of device: for a driver
// that refuses what nvcc made. It takes about a second; nothing is written to disk.
#ifndef HVD_RUNTIME_DEVICE_CUDA_NVRTC_KERNEL_COMPILER_H_
#define HVD_RUNTIME_DEVICE_CUDA_NVRTC_KERNEL_COMPILER_H_

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/cuda/nvrtc/kernels_source.h"
#include "runtime/device/cuda/nvrtc/nvrtc_api.h"

namespace hvd {

// The code of `source` for compute capability 90 as sm_90, as the driver loads it. kUnsupported
// with one sentence: the call that failed and what the compiler says, in one line.
Result<std::vector<char>> CompileKernels(const NvrtcLibrary& nvrtc, const KernelsSource& source,
                                         int compute_capability);

// The same for the kernels of this build, by the NVRTC of this process: CudaKernels::compile. Made
// once for each capability and kept for ever. Any thread.
Result<const void*> KernelsForCapability(int compute_capability);

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_NVRTC_KERNEL_COMPILER_H_
