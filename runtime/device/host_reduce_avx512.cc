#define HVD_KERNELS_NAME kKernelsAvx512
#include "runtime/device/host_reduce_kernels.inc"
