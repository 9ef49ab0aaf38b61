// Turns hundreds of tensors into launches of kernels.cu. Pure functions.
#ifndef HVD_RUNTIME_DEVICE_CUDA_BATCH_PLAN_H_
#define HVD_RUNTIME_DEVICE_CUDA_BATCH_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/cuda/batch_kernel.h"
#include "runtime/device/device.h"

namespace hvd {

// One launch: head.segments equals segments.size(), at most kLargeBatch.
struct BatchLaunch {
  BatchHead head{};
  std::vector<BatchSegment> segments;
  uint32_t tiles = 0;  // blocks of the grid
};

struct BatchLimits {
  uint32_t segments = kLargeBatch;
  uint32_t tiles = 0x7fffffff;  // maximum grid size in x
};

// As in BatchHead.
struct BatchElements {
  KernelElement from = KernelElement::kBytes, to = KernelElement::kBytes;

  bool operator==(const BatchElements&) const = default;
};

// kBytes if elements are copied unchanged, whatever the type. kUnsupported: integers cannot be
// scaled here, and only float32 and narrower floats can be converted to each other.
Result<BatchElements> BatchElementsOf(const BatchSpec& spec);

// Every element of every item is in exactly one tile of one launch, in item order; empty items are
// skipped.
Result<std::vector<BatchLaunch>> PlanBatch(const BatchSpec& spec, std::span<const BatchItem> items,
                                           const BatchLimits& limits = {});

// A tensor of a fused buffer.
struct DeviceTensor {
  DeviceAddress address = 0;
  uint64_t elements = 0;
};

// The byte offset of each tensor in a buffer of `dtype` elements, each a multiple of 16, so that it
// can be moved in large words. The last entry is the size of the buffer.
std::vector<uint64_t> BufferOffsets(DType dtype, std::span<const DeviceTensor> tensors);
// Items that copy the tensors into the buffer, and back.
std::vector<BatchItem> PackItems(std::span<const DeviceTensor> tensors, DeviceAddress buffer,
                                 std::span<const uint64_t> offsets);
std::vector<BatchItem> UnpackItems(std::span<const DeviceTensor> tensors, DeviceAddress buffer,
                                   std::span<const uint64_t> offsets);

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_BATCH_PLAN_H_
