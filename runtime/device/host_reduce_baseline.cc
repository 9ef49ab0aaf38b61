#define HVD_KERNEL_NAME ReduceBaseline
#include "runtime/device/host_reduce_kernels.inc"
