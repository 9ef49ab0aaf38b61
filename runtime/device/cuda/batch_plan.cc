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

// Each of kBatchThreads threads has four words of 16 bytes, or two times eight elements.
constexpr uint32_t TileElements(BatchKind kind) {
  return kBatchThreads * (kind == BatchKind::kBytes ? 64 : 16);
}

std::optional<uint32_t> PlaceAmongFloats(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return 0;
    case DType::kFloat16: return 1;
    case DType::kBfloat16: return 2;
    default: return std::nullopt;
  }
}

// Fills one launch after the other.
class BatchWriter {
 public:
  BatchWriter(BatchHead head, const BatchLimits& limits) : head_(head), limits_(limits) {}

  // `element_bytes`: how far the addresses go on with each element.
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

Result<BatchKind> BatchKindOf(const BatchSpec& spec) {
  if (spec.from == spec.to && spec.scale == 1.0) return BatchKind::kBytes;
  if (spec.from == DType::kFloat64 && spec.to == DType::kFloat64) return BatchKind::kFloat64;
  const std::optional<uint32_t> from = PlaceAmongFloats(spec.from);
  const std::optional<uint32_t> to = PlaceAmongFloats(spec.to);
  if (from.has_value() && to.has_value()) return static_cast<BatchKind>(3 * *from + *to);
  return Unsupported(
      Format("a GPU does not turn {} into {} with a scale of {} yet: float32, float16 and bfloat16 "
             "are scaled and converted, float64 is scaled, every type is copied",
             NameOf(spec.from), NameOf(spec.to), spec.scale));
}

Result<std::vector<BatchLaunch>> PlanBatch(const BatchSpec& spec, std::span<const BatchItem> items,
                                           const BatchLimits& limits) {
  const Result<BatchKind> kind = BatchKindOf(spec);
  if (!kind.ok()) return kind.status();
  const bool bytes = *kind == BatchKind::kBytes;
  const uint64_t from_bytes = SizeOf(spec.from), to_bytes = SizeOf(spec.to);
  BatchWriter writer({.scale = spec.scale, .tile_elements = TileElements(*kind), .kind = *kind},
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
