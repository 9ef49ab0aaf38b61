// The variants of the loops over host memory that this processor can run.
#ifndef HVD_RUNTIME_DEVICE_HOST_KERNEL_VARIANTS_H_
#define HVD_RUNTIME_DEVICE_HOST_KERNEL_VARIANTS_H_

#include <string_view>
#include <vector>

#include "runtime/device/host_kernels.h"

namespace hvd {

struct KernelVariant {
  std::string_view name;  // "baseline", "avx2" or "avx512"
  const Kernels* kernels;
};

// The baseline, which every processor runs, first; the one to use last.
std::vector<KernelVariant> RunnableKernelVariants();

// The last of them.
const KernelVariant& KernelsInUse();

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_HOST_KERNEL_VARIANTS_H_
