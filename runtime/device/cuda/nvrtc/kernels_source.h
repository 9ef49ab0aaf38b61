// The source of kernels.cu and all its headers, built into libhvd_cuda.so for NVRTC.
#ifndef HVD_RUNTIME_DEVICE_CUDA_NVRTC_KERNELS_SOURCE_H_
#define HVD_RUNTIME_DEVICE_CUDA_NVRTC_KERNELS_SOURCE_H_

#include <string>
#include <vector>

namespace hvd {

struct KernelsHeader {
  std::string name;  // as in #include
  std::string text;
};

struct KernelsSource {
  std::string name, text;
  std::vector<KernelsHeader> headers;
};

KernelsSource SourceOfKernels();

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_NVRTC_KERNELS_SOURCE_H_
