// The variants of the host memory loops that this CPU can run.
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

// The baseline, which every CPU runs, first; the preferred one last.
std::vector<KernelVariant> RunnableKernelVariants();

// The last of RunnableKernelVariants().
const KernelVariant& KernelsInUse();

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_HOST_KERNEL_VARIANTS_H_
