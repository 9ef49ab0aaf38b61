// Turns the steps of an Adasum into launches of kernels.cu. Pure functions.
#ifndef HVD_RUNTIME_DEVICE_CUDA_ADASUM_PLAN_H_
#define HVD_RUNTIME_DEVICE_CUDA_ADASUM_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/cuda/adasum_kernel.h"
#include "runtime/device/device.h"

namespace hvd {

enum class AdasumKernel : uint8_t { kDots, kFold, kWeigh, kSum };
inline constexpr size_t kAdasumKernels = 4;
// In kernels.cu.
inline constexpr const char* kAdasumKernelNames[kAdasumKernels] = {
    "hvd_adasum_dots", "hvd_adasum_fold", "hvd_adasum_weigh", "hvd_adasum_sum"};

struct AdasumLaunch {
  AdasumKernel kernel = AdasumKernel::kDots;
  uint32_t blocks_x = 1, blocks_y = 1;  // blocks of kKernelThreads threads
  AdasumArguments arguments{};
};

// In launch order; empty if there is nothing to do. kUnsupported: a type without Adasum.
Result<std::vector<AdasumLaunch>> PlanAdasumStep(const AdasumStep& step);

// Scratch size for the dot products of `vectors` vectors of any length.
uint64_t AdasumScratchBytes(uint32_t vectors);

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_ADASUM_PLAN_H_
