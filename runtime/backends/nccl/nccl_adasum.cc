#include "runtime/backends/nccl/nccl_adasum.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/align.h"
#include "runtime/base/text/format.h"
#include "runtime/device/adasum.h"
#include "runtime/device/cuda/adasum_plan.h"

namespace hvd {
namespace {

// Dot products grow with the square of the number of members.
constexpr uint32_t kMostMembers = 64;
// For the segments of a round, unless one tensor alone has more.
constexpr uint64_t kRoundBytes = uint64_t{64} << 20;
constexpr uint64_t kGrain = 256;        // of places in the buffer
constexpr uint64_t kPartElements = 64;  // alignment of a segment

// The segment of a tensor that a member combines.
struct Segment {
  uint64_t begin = 0, count = 0;
};
Segment SegmentOf(uint64_t elements, uint32_t members, uint32_t index) {
  const uint64_t each = RoundUp((elements + members - 1) / members, kPartElements);
  const uint64_t begin = std::min(each * index, elements);
  return {begin, std::min(each, elements - begin)};
}

// Between the segments that the members send to this one. All members compute the same value, as
// the first segment is the longest.
uint64_t StrideOf(const NcclAdasum& adasum, const NcclTensor& tensor) {
  return RoundUp(SegmentOf(tensor.elements, adasum.size, 0).count * SizeOf(adasum.dtype), kGrain);
}
uint64_t SegmentBytes(const NcclAdasum& adasum, const NcclTensor& tensor) {
  return StrideOf(adasum, tensor) * adasum.size;
}

// Places in the buffer for a round of `tensors` tensors.
struct Layout {
  uint64_t triangle = 0;  // of one tensor and member
  uint64_t part = 0;      // the triangles of one member
  uint64_t weights_of_one = 0;
  uint64_t scratch = 0, triangles = 0, weights = 0, segments = 0, end = 0;
};
Layout LayoutOf(const NcclAdasum& adasum, std::span<const NcclTensor> tensors) {
  Layout layout;
  layout.triangle = DotProductCount(adasum.size) * sizeof(double);
  layout.part = layout.triangle * tensors.size();
  layout.weights_of_one = adasum.size * sizeof(double);
  layout.triangles = RoundUp(AdasumScratchBytes(adasum.size), kGrain);
  layout.weights = layout.triangles + RoundUp(layout.part * adasum.size, kGrain);
  layout.segments = layout.weights + RoundUp(layout.weights_of_one * tensors.size(), kGrain);
  layout.end = layout.segments;
  for (const NcclTensor& tensor : tensors) layout.end += SegmentBytes(adasum, tensor);
  return layout;
}

// The first tensors that go together; at least one.
size_t RoundOf(const NcclAdasum& adasum, std::span<const NcclTensor> tensors) {
  uint64_t bytes = 0;
  size_t count = 0;
  while (count < tensors.size()) {
    bytes += SegmentBytes(adasum, tensors[count]);
    if (count > 0 && bytes > kRoundBytes) break;
    ++count;
  }
  return count;
}

template <typename Each>
void ForEachRound(const NcclAdasum& adasum, std::span<const NcclTensor> tensors, Each each) {
  while (!tensors.empty()) {
    const size_t count = RoundOf(adasum, tensors);
    each(tensors.first(count));
    tensors = tensors.subspan(count);
  }
}

class Round {
 public:
  Round(const NcclAdasum& adasum, std::span<const NcclTensor> tensors, DeviceAddress buffer)
      : adasum_(adasum),
        tensors_(tensors),
        buffer_(buffer),
        layout_(LayoutOf(adasum, tensors)),
        element_(SizeOf(adasum.dtype)) {}

  void AddTo(std::vector<NcclPlan>& plans) const {
    plans.push_back(Measure());
    plans.push_back(Combine());
    plans.push_back(GiveOut());
  }

 private:
  // Every member receives its segments of all members' tensors and computes their dot products.
  NcclPlan Measure() const {
    NcclPlan plan;
    ForEachTensor([&](size_t i, const NcclTensor& tensor, DeviceAddress segments) {
      const uint64_t own = OwnSegment(tensor).count;
      for (uint32_t m = 0; m < adasum_.size; ++m) {
        const int peer = static_cast<int>(m);
        const Segment segment = SegmentOf(tensor.elements, adasum_.size, m);
        if (segment.count > 0) {
          plan.calls.push_back({.kind = NcclCallKind::kSend,
                                .from = tensor.from + segment.begin * element_,
                                .count = segment.count * element_,
                                .peer = peer});
        }
        if (own > 0) {
          plan.calls.push_back({.kind = NcclCallKind::kRecv,
                                .to = segments + m * StrideOf(adasum_, tensor),
                                .count = own * element_,
                                .peer = peer});
        }
      }
      plan.adasum.emplace_back(
          AdasumDots{Vectors(tensor, segments), buffer_, Triangle(adasum_.index, i)});
    });
    return plan;
  }

  // All members receive all dot products, and each combines its segments.
  NcclPlan Combine() const {
    NcclPlan plan;
    plan.calls.push_back({.kind = NcclCallKind::kAllGather,
                          .from = Triangle(adasum_.index, 0),
                          .to = Triangle(0, 0),
                          .count = layout_.part});
    ForEachTensor([&](size_t i, const NcclTensor& tensor, DeviceAddress segments) {
      const DeviceAddress weights = buffer_ + layout_.weights + i * layout_.weights_of_one;
      plan.adasum.emplace_back(AdasumWeighing{.parts = Triangle(0, i),
                                              .part_stride = layout_.part,
                                              .part_count = adasum_.size,
                                              .vectors = adasum_.size,
                                              .scale = adasum_.scale,
                                              .products = Triangle(0, i),
                                              .weights = weights});
      plan.adasum.emplace_back(AdasumSum{Vectors(tensor, segments), weights,
                                         tensor.to + OwnSegment(tensor).begin * element_});
    });
    return plan;
  }

  NcclPlan GiveOut() const {
    NcclPlan plan;
    ForEachTensor([&](size_t, const NcclTensor& tensor, DeviceAddress) {
      std::vector<uint64_t> parts;
      for (uint32_t m = 0; m < adasum_.size; ++m)
        parts.push_back(SegmentOf(tensor.elements, adasum_.size, m).count);
      const NcclPlan gather =
          PlanAllgather(adasum_.dtype, tensor.to + OwnSegment(tensor).begin * element_, tensor.to,
                        parts, adasum_.index);
      plan.calls.insert(plan.calls.end(), gather.calls.begin(), gather.calls.end());
    });
    return plan;
  }

  template <typename Each>
  void ForEachTensor(Each each) const {
    DeviceAddress segments = buffer_ + layout_.segments;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      each(i, tensors_[i], segments);
      segments += SegmentBytes(adasum_, tensors_[i]);
    }
  }
  Segment OwnSegment(const NcclTensor& tensor) const {
    return SegmentOf(tensor.elements, adasum_.size, adasum_.index);
  }
  DeviceVectors Vectors(const NcclTensor& tensor, DeviceAddress segments) const {
    return {adasum_.dtype, segments, StrideOf(adasum_, tensor), adasum_.size,
            OwnSegment(tensor).count};
  }
  DeviceAddress Triangle(uint32_t member, size_t tensor) const {
    return buffer_ + layout_.triangles + member * layout_.part + tensor * layout_.triangle;
  }

  const NcclAdasum& adasum_;
  const std::span<const NcclTensor> tensors_;
  const DeviceAddress buffer_;
  const Layout layout_;
  const uint64_t element_;
};

}  // namespace

Status CheckAdasum(DType dtype, uint32_t members) {
  if (!PlanAdasumStep(AdasumSum{.vectors = {.dtype = dtype}}).ok())
    return Unsupported(Format("there is no Adasum of {}", NameOf(dtype)));
  if (members <= kMostMembers) return Status::Ok();
  return Unsupported(
      Format("a GPU does Adasum over up to {} ranks, and these are {}", kMostMembers, members));
}

uint64_t AdasumBytes(const NcclAdasum& adasum, std::span<const NcclTensor> tensors) {
  uint64_t most = 0;
  ForEachRound(adasum, tensors, [&](std::span<const NcclTensor> round) {
    most = std::max(most, LayoutOf(adasum, round).end);
  });
  return most;
}

NcclPlan PlanAdasum(const NcclAdasum& adasum, std::span<const NcclTensor> tensors,
                    const NcclBuffer& buffer) {
  NcclPlan plan;
  ForEachRound(adasum, tensors, [&](std::span<const NcclTensor> round) {
    Round(adasum, round, buffer.address).AddTo(plan.then);
  });
  return plan;
}

}  // namespace hvd
