// The kernels of libhvd_cuda.so. CudaDevice finds them by name; batch_kernel.h has what they do.
#include "runtime/device/cuda/batch_kernel.h"

extern "C" __global__ void __launch_bounds__(hvd::kBatchThreads)
    hvd_batch_small(const __grid_constant__ hvd::BatchArguments<hvd::kSmallBatch> arguments) {
  hvd::RunBatch(arguments.head, arguments.segment, blockIdx.x, threadIdx.x, blockDim.x);
}

extern "C" __global__ void __launch_bounds__(hvd::kBatchThreads)
    hvd_batch_large(const __grid_constant__ hvd::BatchArguments<hvd::kLargeBatch> arguments) {
  hvd::RunBatch(arguments.head, arguments.segment, blockIdx.x, threadIdx.x, blockDim.x);
}
