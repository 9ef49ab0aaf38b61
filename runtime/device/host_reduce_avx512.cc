#define HVD_KERNEL_NAME ReduceAvx512
#include "runtime/device/host_reduce_kernels.inc"
