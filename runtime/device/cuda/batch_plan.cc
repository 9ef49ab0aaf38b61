#include "runtime/device/cuda/batch_plan.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/align.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr uint64_t kBufferAlignment = 16;

// Each of kKernelThreads threads has four words of 16 bytes, or two times eight elements.
constexpr uint32_t TileElements(KernelElement element) {
  return kKernelThreads * (element == KernelElement::kBytes ? 64 : 16);
}

// Types that are converted into each other.
std::optional<KernelElement> FloatOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return KernelElement::kFloat32;
    case DType::kFloat16: return KernelElement::kFloat16;
    case DType::kBfloat16: return KernelElement::kBfloat16;
    case DType::kFloat8E4m3: return KernelElement::kFloat8E4m3;
    case DType::kFloat8E5m2: return KernelElement::kFloat8E5m2;
    default: return std::nullopt;
  }
}

// Fills one launch after the other.
class BatchWriter {
 public:
  BatchWriter(BatchHead head, const BatchLimits& limits) : head_(head), limits_(limits) {}

  // `from_bytes`, `to_bytes`: the distance between elements.
  void Add(BatchSegment segment, uint64_t from_bytes, uint64_t to_bytes) {
    while (segment.elements > 0) {
      BatchLaunch& launch = LaunchWithSpace();
      const uint64_t space = uint64_t{limits_.tiles - launch.tiles} * head_.tile_elements;
      const uint64_t elements = std::min(segment.elements, space);
      launch.segments.push_back({segment.from, segment.to, elements, launch.tiles, 0});
      launch.tiles += static_cast<uint32_t>((elements - 1) / head_.tile_elements + 1);
      launch.head.segments += 1;
      segment.from += elements * from_bytes;
      segment.to += elements * to_bytes;
      segment.elements -= elements;
    }
  }
  std::vector<BatchLaunch> Take() { return std::move(launches_); }

 private:
  BatchLaunch& LaunchWithSpace() {
    const bool full = launches_.empty() || launches_.back().tiles >= limits_.tiles ||
                      launches_.back().segments.size() >= limits_.segments;
    if (full) launches_.push_back({.head = head_});
    return launches_.back();
  }

  const BatchHead head_;
  const BatchLimits limits_;
  std::vector<BatchLaunch> launches_;
};

}  // namespace

Result<BatchElements> BatchElementsOf(const BatchSpec& spec) {
  if (spec.from == spec.to && spec.scale == 1.0) {
    return BatchElements{KernelElement::kBytes, KernelElement::kBytes};
  }
  if (spec.from == DType::kFloat64 && spec.to == DType::kFloat64) {
    return BatchElements{KernelElement::kFloat64, KernelElement::kFloat64};
  }
  const std::optional<KernelElement> from = FloatOf(spec.from), to = FloatOf(spec.to);
  if (from.has_value() && to.has_value()) return BatchElements{*from, *to};
  return Unsupported(
      Format("a GPU does not turn {} into {} with a scale of {}: float32, float16, bfloat16 and "
             "float8 are scaled and converted, float64 is scaled, every type is copied",
             NameOf(spec.from), NameOf(spec.to), spec.scale));
}

Result<std::vector<BatchLaunch>> PlanBatch(const BatchSpec& spec, std::span<const BatchItem> items,
                                           const BatchLimits& limits) {
  const Result<BatchElements> elements = BatchElementsOf(spec);
  if (!elements.ok()) return elements.status();
  const bool bytes = elements->from == KernelElement::kBytes;
  const uint64_t from_bytes = SizeOf(spec.from), to_bytes = SizeOf(spec.to);
  BatchWriter writer({.scale = spec.scale,
                      .tile_elements = TileElements(elements->from),
                      .from = elements->from,
                      .to = elements->to},
                     limits);
  for (const BatchItem& item : items) {
    if (bytes) {
      writer.Add({item.from, item.to, item.elements * from_bytes, 0, 0}, 1, 1);
    } else {
      writer.Add({item.from, item.to, item.elements, 0, 0}, from_bytes, to_bytes);
    }
  }
  return writer.Take();
}

std::vector<uint64_t> BufferOffsets(DType dtype, std::span<const DeviceTensor> tensors) {
  std::vector<uint64_t> offsets = {0};
  for (const DeviceTensor& tensor : tensors) {
    offsets.push_back(RoundUp(offsets.back() + tensor.elements * SizeOf(dtype), kBufferAlignment));
  }
  return offsets;
}

std::vector<BatchItem> PackItems(std::span<const DeviceTensor> tensors, DeviceAddress buffer,
                                 std::span<const uint64_t> offsets) {
  std::vector<BatchItem> items;
  items.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    items.push_back({tensors[i].address, buffer + offsets[i], tensors[i].elements});
  }
  return items;
}

std::vector<BatchItem> UnpackItems(std::span<const DeviceTensor> tensors, DeviceAddress buffer,
                                   std::span<const uint64_t> offsets) {
  std::vector<BatchItem> items = PackItems(tensors, buffer, offsets);
  for (BatchItem& item : items) std::swap(item.from, item.to);
  return items;
}

}  // namespace hvd
