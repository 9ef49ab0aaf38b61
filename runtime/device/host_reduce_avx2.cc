#define HVD_KERNEL_NAME ReduceAvx2
#include "runtime/device/host_reduce_kernels.inc"
