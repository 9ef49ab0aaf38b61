// kernels.cu compiled by nvcc: a fat binary with code for each architecture, and PTX for newer
// ones.
#ifndef HVD_RUNTIME_DEVICE_CUDA_KERNELS_IMAGE_H_
#define HVD_RUNTIME_DEVICE_CUDA_KERNELS_IMAGE_H_

// The name is the symbol's.
extern "C" const unsigned char hvd_kernels_image[];  // NOLINT(readability-identifier-naming)

#endif  // HVD_RUNTIME_DEVICE_CUDA_KERNELS_IMAGE_H_
