// The kernels of kernels.cu, played by the processor: block after block, thread after thread. The
// fakes of the driver and the checks of a GPU share it.
#ifndef HVD_TEST_FAKES_CUDA_PLAY_KERNELS_H_
#define HVD_TEST_FAKES_CUDA_PLAY_KERNELS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/device/cuda/adasum_plan.h"
#include "runtime/device/cuda/batch_kernel.h"

namespace hvd::test {

// The handle of a kernel, as fake drivers give it: the segments of a batch, or 1 and up for
// Adasum's. 0: there is no such kernel.
inline uintptr_t HandleOfKernel(std::string_view name) {
  if (name == "hvd_batch_small") return kSmallBatch;
  if (name == "hvd_batch_large") return kLargeBatch;
  for (uintptr_t i = 0; i < kAdasumKernels; ++i) {
    if (name == kAdasumKernelNames[i]) return i + 1;
  }
  return 0;
}
inline bool IsAdasumHandle(uintptr_t handle) { return handle >= 1 && handle <= kAdasumKernels; }
inline AdasumKernel AdasumOfHandle(uintptr_t handle) {
  return static_cast<AdasumKernel>(handle - 1);
}

inline void PlayBatch(const BatchHead& head, const BatchSegment* segments, unsigned tiles,
                      unsigned threads) {
  for (unsigned tile = 0; tile < tiles; ++tile) {
    for (unsigned thread = 0; thread < threads; ++thread)
      RunBatch(head, segments, tile, thread, threads);
  }
}

inline void PlayAdasumDots(const AdasumArguments& arguments, unsigned chunk, unsigned tile,
                           unsigned threads) {
  std::vector<double> shared(size_t{kAdasumSums} * threads);
  for (unsigned thread = 0; thread < threads; ++thread)
    AdasumAddDots(arguments, chunk, tile, thread, threads, shared.data());
  for (unsigned half = threads / 2; half > 0; half /= 2) {
    for (unsigned thread = 0; thread < half; ++thread)
      AdasumFoldThreads(shared.data(), half, thread, threads);
  }
  for (unsigned thread = 0; thread < kAdasumSums; ++thread)
    AdasumStoreDots(arguments, chunk, tile, thread, threads, shared.data());
}

inline void PlayAdasum(const AdasumLaunch& launch, unsigned threads = kKernelThreads) {
  const AdasumArguments& arguments = launch.arguments;
  for (unsigned y = 0; y < launch.blocks_y; ++y) {
    for (unsigned x = 0; x < launch.blocks_x; ++x) {
      if (launch.kernel == AdasumKernel::kDots) {
        PlayAdasumDots(arguments, x, y, threads);
        continue;
      }
      for (unsigned thread = 0; thread < threads; ++thread) {
        const Word64 place = Word64{x} * threads + thread;
        if (launch.kernel == AdasumKernel::kFold) AdasumFoldChunks(arguments, place);
        if (launch.kernel == AdasumKernel::kSum) AdasumAddWeighted(arguments, place);
        if (launch.kernel == AdasumKernel::kWeigh) AdasumAddTriangles(arguments, thread, threads);
      }
      if (launch.kernel == AdasumKernel::kWeigh) AdasumWeigh(arguments);
    }
  }
}

}  // namespace hvd::test

#endif  // HVD_TEST_FAKES_CUDA_PLAY_KERNELS_H_
