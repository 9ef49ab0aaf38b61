// hvd_perf --device cuda: times allreduces of GPU memory, through the C ABI and, in the same run,
// by NCCL directly. Needs the driver, not CUDA; without NCCL, or if it fails (two ranks on one
// GPU), its columns stay empty.
#ifndef HVD_CMD_HVD_PERF_CUDA_PERF_H_
#define HVD_CMD_HVD_PERF_CUDA_PERF_H_

#include "cmd/hvd_perf/measure.h"

namespace hvd_perf {

// After hvd_init. False if a result was wrong; ends the program if there is no GPU.
bool RunOnCuda(const Options& options);

}  // namespace hvd_perf

#endif  // HVD_CMD_HVD_PERF_CUDA_PERF_H_
