// DeviceKernels: loads and launches the kernels of kernels.cu on one device. Call with the context
// current, from one thread at a time.
#ifndef HVD_RUNTIME_DEVICE_CUDA_DEVICE_KERNELS_H_
#define HVD_RUNTIME_DEVICE_CUDA_DEVICE_KERNELS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "runtime/device/cuda/adasum_plan.h"
#include "runtime/device/cuda/batch_plan.h"
#include "runtime/device/cuda/cuda_calls.h"

namespace hvd {

// kernels.cu as loaded by the driver.
struct CudaKernels {
  using Compile = std::function<Result<const void*>(int compute_capability)>;

  CudaKernels(const void* made = nullptr,  // NOLINT(google-explicit-constructor)
              Compile otherwise = nullptr)
      : image(made), compile(std::move(otherwise)) {}

  const void* image;  // a fat binary
  // Used if the driver rejects the image: returns code for one compute capability, never freed. May
  // be null.
  Compile compile;
};

class DeviceKernels {
 public:
  explicit DeviceKernels(CudaCalls& calls)
      : calls_(calls), arguments_(std::make_unique<BatchArguments<kLargeBatch>>()) {}

  Status Load(const CudaKernels& kernels, int compute_capability);
  void Unload();

  Status Launch(const BatchLaunch& launch, CuStream stream);
  Status Launch(const AdasumLaunch& launch, CuStream stream);

 private:
  Status LoadModule(const CudaKernels& kernels, int compute_capability);
  Status Launch(CuFunction kernel, uint32_t blocks_x, uint32_t blocks_y, void* argument,
                CuStream stream);

  CudaCalls& calls_;
  CuModule module_ = nullptr;
  CuFunction small_ = nullptr, large_ = nullptr;
  std::array<CuFunction, kAdasumKernels> adasum_{};
  // The argument of the current launch; the driver copies it.
  std::unique_ptr<BatchArguments<kLargeBatch>> arguments_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_DEVICE_KERNELS_H_
