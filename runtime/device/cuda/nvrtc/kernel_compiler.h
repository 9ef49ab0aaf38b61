// Compiles kernels.cu at run time with NVRTC for one compute capability, if the driver rejects
// nvcc's output. Takes about a second; nothing is written to disk.
#ifndef HVD_RUNTIME_DEVICE_CUDA_NVRTC_KERNEL_COMPILER_H_
#define HVD_RUNTIME_DEVICE_CUDA_NVRTC_KERNEL_COMPILER_H_

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/cuda/nvrtc/kernels_source.h"
#include "runtime/device/cuda/nvrtc/nvrtc_api.h"

namespace hvd {

// The cubin of `source`, loadable by the driver, for sm_90 if compute_capability is 90.
// kUnsupported with a one-line message: the call that failed and the compiler's output.
Result<std::vector<char>> CompileKernels(const NvrtcLibrary& nvrtc, const KernelsSource& source,
                                         int compute_capability);

// The same for the kernels of this build with the NVRTC of this process: CudaKernels::compile.
// Compiled once per capability and kept forever. Any thread.
Result<const void*> KernelsForCapability(int compute_capability);

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_NVRTC_KERNEL_COMPILER_H_
