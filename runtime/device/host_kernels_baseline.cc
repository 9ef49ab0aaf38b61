#define HVD_KERNELS_NAME kKernelsBaseline
#include "runtime/device/host_kernels.inc"
