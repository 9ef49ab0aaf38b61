// hvd_perf --device cuda --steps SETS: the exchange of one training step, as many tensors as a
// model has parameters, in three ways in turn: by hvdrun, each tensor submitted by itself; by NCCL
// alone, all in one group in a fixed order; by NCCL alone, packed, one call, unpacked.
#ifndef HVD_CMD_HVD_PERF_CUDA_STEPS_H_
#define HVD_CMD_HVD_PERF_CUDA_STEPS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "cmd/hvd_perf/cuda_side.h"
#include "cmd/hvd_perf/measure.h"

namespace hvd_perf {

// Elements of each tensor: "ResNet-50", "GPT-2" or "small" (161 tensors of 64 bytes); empty for
// other names.
std::vector<size_t> GradientSet(const std::string& name);

// False if a sum was wrong.
bool RunSteps(Gpu& gpu, RawNccl& nccl, const Options& options);

}  // namespace hvd_perf

#endif  // HVD_CMD_HVD_PERF_CUDA_STEPS_H_
