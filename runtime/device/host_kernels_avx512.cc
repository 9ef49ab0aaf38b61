#define HVD_KERNELS_NAME kKernelsAvx512
#include "runtime/device/host_kernels.inc"
