// The interface between host_reduce.cc and its variants per instruction set.
#ifndef HVD_RUNTIME_DEVICE_HOST_REDUCE_KERNELS_H_
#define HVD_RUNTIME_DEVICE_HOST_REDUCE_KERNELS_H_

#include "runtime/device/host_reduce.h"

namespace hvd {

// The arguments of ReduceRange, flat.
struct KernelArgs {
  DType dtype;
  Arithmetic arithmetic;
  double prescale;
  double postscale;
  double divisor;
  const void* const* inputs;
  unsigned long input_count;
  void* const* outputs;
  unsigned long output_count;
  unsigned long first;
  unsigned long count;
};

void ReduceBaseline(const KernelArgs& args);
void ReduceAvx2(const KernelArgs& args);
void ReduceAvx512(const KernelArgs& args);

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_HOST_REDUCE_KERNELS_H_
