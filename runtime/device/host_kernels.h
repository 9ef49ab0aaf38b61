// The interface of host_copy.cc and host_reduce.cc to their loops, compiled per instruction set.
#ifndef HVD_RUNTIME_DEVICE_HOST_KERNELS_H_
#define HVD_RUNTIME_DEVICE_HOST_KERNELS_H_

#include "runtime/device/dtype.h"

namespace hvd {

// The arguments of the functions in host_reduce.h, flattened.
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

// One variant. `products` and `weights` as in host_reduce.h.
struct Kernels {
  void (*copy)(void* to, const void* from, unsigned long bytes);
  void (*reduce)(const KernelArgs& args);
  void (*wide_reduce)(const KernelArgs& args);
  void (*narrow)(const KernelArgs& args);
  void (*dot_products)(const KernelArgs& args, double* products);
  void (*weighted_sum)(const KernelArgs& args, const double* weights);
};

extern const Kernels kKernelsBaseline;
extern const Kernels kKernelsAvx2;
extern const Kernels kKernelsAvx512;

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_HOST_KERNELS_H_
