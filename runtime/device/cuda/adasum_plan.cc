#include "runtime/device/cuda/adasum_plan.h"

#include <algorithm>
#include <optional>

#include "runtime/base/text/format.h"
#include "runtime/device/adasum.h"

namespace hvd {
namespace {

// Per block: enough that summing over its threads is cheap in comparison.
constexpr uint64_t kLeastChunk = uint64_t{16} * kKernelThreads;
// More blocks than a GPU runs at once; few enough that their products are added up quickly.
constexpr uint64_t kMostChunks = 256;

std::optional<KernelElement> ElementOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16: return KernelElement::kFloat16;
    case DType::kBfloat16: return KernelElement::kBfloat16;
    case DType::kFloat32: return KernelElement::kFloat32;
    case DType::kFloat64: return KernelElement::kFloat64;
    default: return std::nullopt;
  }
}

uint32_t BlocksFor(uint64_t threads) {
  return static_cast<uint32_t>((threads + kKernelThreads - 1) / kKernelThreads);
}

Result<AdasumArguments> ArgumentsFor(const DeviceVectors& vectors) {
  const std::optional<KernelElement> element = ElementOf(vectors.dtype);
  if (!element) return Unsupported(Format("there is no Adasum of {}", NameOf(vectors.dtype)));
  AdasumArguments arguments{};
  arguments.first = vectors.first;
  arguments.stride = vectors.stride;
  arguments.elements = vectors.elements;
  arguments.count = vectors.count;
  arguments.element = *element;
  return arguments;
}

Result<std::vector<AdasumLaunch>> Plan(const AdasumDots& step) {
  const Result<AdasumArguments> begun = ArgumentsFor(step.vectors);
  if (!begun.ok()) return begun.status();
  AdasumArguments arguments = *begun;
  const uint64_t elements = step.vectors.elements;
  const uint64_t each = std::max(kLeastChunk, (elements + kMostChunks - 1) / kMostChunks);
  arguments.chunk_elements = (each + 15) / 16 * 16;
  arguments.chunks =
      static_cast<uint32_t>((elements + arguments.chunk_elements - 1) / arguments.chunk_elements);
  arguments.partials = step.scratch;
  arguments.products = step.products;
  const uint64_t groups = (step.vectors.count + kAdasumGroup - 1) / kAdasumGroup;
  const auto tiles = static_cast<uint32_t>(DotProductCount(groups));
  std::vector<AdasumLaunch> launches;
  if (arguments.chunks > 0)
    launches.push_back({AdasumKernel::kDots, arguments.chunks, tiles, arguments});
  launches.push_back(
      {AdasumKernel::kFold, BlocksFor(DotProductCount(step.vectors.count)), 1, arguments});
  return launches;
}

Result<std::vector<AdasumLaunch>> Plan(const AdasumWeighing& step) {
  AdasumArguments arguments{};
  arguments.count = step.vectors;
  arguments.triangles = step.parts;
  arguments.triangle_stride = step.part_stride;
  arguments.triangle_count = step.part_count;
  arguments.products = step.products;
  arguments.weights = step.weights;
  arguments.scale = step.scale;
  return std::vector<AdasumLaunch>{{AdasumKernel::kWeigh, 1, 1, arguments}};
}

Result<std::vector<AdasumLaunch>> Plan(const AdasumSum& step) {
  const Result<AdasumArguments> begun = ArgumentsFor(step.vectors);
  if (!begun.ok()) return begun.status();
  std::vector<AdasumLaunch> launches;
  if (step.vectors.elements == 0) return launches;
  AdasumArguments arguments = *begun;
  arguments.weights = step.weights;
  arguments.output = step.output;
  const uint64_t threads = (step.vectors.elements + kAdasumWidth - 1) / kAdasumWidth;
  launches.push_back({AdasumKernel::kSum, BlocksFor(threads), 1, arguments});
  return launches;
}

}  // namespace

Result<std::vector<AdasumLaunch>> PlanAdasumStep(const AdasumStep& step) {
  return std::visit([](const auto& one) { return Plan(one); }, step);
}

uint64_t AdasumScratchBytes(uint32_t vectors) {
  return kMostChunks * DotProductCount(vectors) * sizeof(double);
}

}  // namespace hvd
