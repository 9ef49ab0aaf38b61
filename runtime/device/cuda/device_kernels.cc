#include "runtime/device/cuda/device_kernels.h"

#include <algorithm>
#include <cstddef>

namespace hvd {
namespace {

static_assert(sizeof(BatchArguments<kSmallBatch>) <= 4096);
static_assert(sizeof(BatchArguments<kLargeBatch>) <= 32764);
// The driver copies as many bytes as the kernel declares, so one buffer serves both.
static_assert(offsetof(BatchArguments<kSmallBatch>, segment) ==
              offsetof(BatchArguments<kLargeBatch>, segment));

}  // namespace

Status DeviceKernels::Load(const CudaKernels& kernels, int compute_capability) {
  HVD_RETURN_IF_ERROR(LoadModule(kernels, compute_capability));
  const auto& find = calls_.driver().module_get_function;
  HVD_RETURN_IF_ERROR(calls_.Do(find, &small_, module_, "hvd_batch_small"));
  HVD_RETURN_IF_ERROR(calls_.Do(find, &large_, module_, "hvd_batch_large"));
  for (size_t i = 0; i < kAdasumKernels; ++i)
    HVD_RETURN_IF_ERROR(calls_.Do(find, &adasum_[i], module_, kAdasumKernelNames[i]));
  return Status::Ok();
}

Status DeviceKernels::LoadModule(const CudaKernels& kernels, int compute_capability) {
  const auto& load = calls_.driver().module_load_data;
  Status refused = calls_.Do(load, &module_, kernels.image);
  if (refused.code() != Code::kUnsupported || kernels.compile == nullptr) return refused;
  const Result<const void*> compiled = kernels.compile(compute_capability);
  if (!compiled.ok()) return Unsupported(refused.message() + "; " + compiled.status().message());
  return calls_.Do(load, &module_, *compiled);
}

void DeviceKernels::Unload() {
  if (module_ != nullptr) calls_.driver().module_unload(module_);
  module_ = nullptr;
}

Status DeviceKernels::Launch(const BatchLaunch& launch, CuStream stream) {
  arguments_->head = launch.head;
  std::copy(launch.segments.begin(), launch.segments.end(), arguments_->segment);
  const CuFunction kernel = launch.segments.size() <= kSmallBatch ? small_ : large_;
  return Launch(kernel, launch.tiles, 1, arguments_.get(), stream);
}

Status DeviceKernels::Launch(const AdasumLaunch& launch, CuStream stream) {
  AdasumArguments arguments = launch.arguments;
  return Launch(adasum_[static_cast<size_t>(launch.kernel)], launch.blocks_x, launch.blocks_y,
                &arguments, stream);
}

Status DeviceKernels::Launch(CuFunction kernel, uint32_t blocks_x, uint32_t blocks_y,
                             void* argument, CuStream stream) {
  std::array<void*, 1> parameters = {argument};
  return calls_.Do(calls_.driver().launch_kernel, kernel, blocks_x, blocks_y, 1U, kKernelThreads,
                   1U, 1U, 0U, stream, parameters.data(), static_cast<void**>(nullptr));
}

}  // namespace hvd
