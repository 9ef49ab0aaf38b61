// The kernels of libhvd_cuda.so. CudaDevice finds them by name; batch_kernel.h and adasum_kernel.h
// have what they do.
#include "runtime/device/cuda/adasum_kernel.h"
#include "runtime/device/cuda/batch_kernel.h"

extern "C" __global__ void __launch_bounds__(hvd::kKernelThreads)
    hvd_batch_small(const __grid_constant__ hvd::BatchArguments<hvd::kSmallBatch> arguments) {
  hvd::RunBatch(arguments.head, arguments.segment, blockIdx.x, threadIdx.x, blockDim.x);
}

extern "C" __global__ void __launch_bounds__(hvd::kKernelThreads)
    hvd_batch_large(const __grid_constant__ hvd::BatchArguments<hvd::kLargeBatch> arguments) {
  hvd::RunBatch(arguments.head, arguments.segment, blockIdx.x, threadIdx.x, blockDim.x);
}

extern "C" __global__ void __launch_bounds__(hvd::kKernelThreads)
    hvd_adasum_dots(const __grid_constant__ hvd::AdasumArguments arguments) {
  __shared__ double sums[hvd::kAdasumSums * hvd::kKernelThreads];
  const unsigned thread = threadIdx.x;
  hvd::AdasumAddDots(arguments, blockIdx.x, blockIdx.y, thread, hvd::kKernelThreads, sums);
  for (unsigned half = hvd::kKernelThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) hvd::AdasumFoldThreads(sums, half, thread, hvd::kKernelThreads);
  }
  __syncthreads();
  if (thread < hvd::kAdasumSums) {
    hvd::AdasumStoreDots(arguments, blockIdx.x, blockIdx.y, thread, hvd::kKernelThreads, sums);
  }
}

extern "C" __global__ void __launch_bounds__(hvd::kKernelThreads)
    hvd_adasum_fold(const __grid_constant__ hvd::AdasumArguments arguments) {
  hvd::AdasumFoldChunks(arguments, blockIdx.x * hvd::kKernelThreads + threadIdx.x);
}

// One block.
extern "C" __global__ void __launch_bounds__(hvd::kKernelThreads)
    hvd_adasum_weigh(const __grid_constant__ hvd::AdasumArguments arguments) {
  hvd::AdasumAddTriangles(arguments, threadIdx.x, hvd::kKernelThreads);
  __syncthreads();
  if (threadIdx.x == 0) hvd::AdasumWeigh(arguments);
}

extern "C" __global__ void __launch_bounds__(hvd::kKernelThreads)
    hvd_adasum_sum(const __grid_constant__ hvd::AdasumArguments arguments) {
  hvd::AdasumAddWeighted(arguments,
                         static_cast<hvd::Word64>(blockIdx.x) * hvd::kKernelThreads + threadIdx.x);
}
