// The variants of the reduction that this processor can run. For host_reduce.cc, tests and
// benchmarks.
#ifndef HVD_RUNTIME_DEVICE_HOST_REDUCE_VARIANTS_H_
#define HVD_RUNTIME_DEVICE_HOST_REDUCE_VARIANTS_H_

#include <string_view>
#include <vector>

#include "runtime/device/host_reduce_kernels.h"

namespace hvd {

struct ReduceVariantKernels {
  std::string_view name;
  const Kernels* kernels;
};

// The baseline, which every processor runs, first; the one to use last.
std::vector<ReduceVariantKernels> RunnableReduceVariants();

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_HOST_REDUCE_VARIANTS_H_
