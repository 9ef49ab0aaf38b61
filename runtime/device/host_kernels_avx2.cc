#define HVD_KERNELS_NAME kKernelsAvx2
#include "runtime/device/host_kernels.inc"
