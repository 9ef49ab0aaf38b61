#include "test/gpu/adasum_checks.h"

#include <algorithm>
#include <limits>
#include <random>
#include <string>

#include "runtime/base/align.h"
#include "runtime/device/adasum.h"
#include "test/fakes/cuda/play_kernels.h"
#include "test/gpu/two_sides.h"

namespace hvd::test {
namespace {

struct AdasumShape {
  DType dtype = DType::kFloat32;
  uint32_t vectors = 1;
  uint64_t elements = 0;
  uint64_t shift = 0;  // in bytes: 0 is aligned
};

// All in one piece of memory.
struct AdasumPlaces {
  explicit AdasumPlaces(const AdasumShape& shape) {
    stride = RoundUp(shape.elements * SizeOf(shape.dtype), 256);
    scratch = RoundUp(stride * shape.vectors + shape.shift, 256);
    products = scratch + RoundUp(AdasumScratchBytes(shape.vectors), 256);
    weights = products + RoundUp(DotProductCount(shape.vectors) * sizeof(double), 256);
    output = weights + RoundUp(shape.vectors * sizeof(double), 256);
    end = output + stride + 256;
  }
  uint64_t stride, scratch, products, weights, output, end;
};

std::vector<AdasumStep> StepsAt(const AdasumShape& shape, DeviceAddress base) {
  const AdasumPlaces places(shape);
  const DeviceVectors vectors{shape.dtype, base + shape.shift, places.stride, shape.vectors,
                              shape.elements};
  return {AdasumDots{vectors, base + places.scratch, base + places.products},
          AdasumWeighing{.parts = base + places.products,
                         .part_count = 1,
                         .vectors = shape.vectors,
                         .scale = 0.75,
                         .products = base + places.products,
                         .weights = base + places.weights},
          AdasumSum{vectors, base + places.weights, base + places.output + shape.shift}};
}

Status CompareAdasum(Device& device, const AdasumShape& shape, const GpuCheckOptions& options) {
  const AdasumPlaces places(shape);
  TwoSides sides(device, places.end);
  if (!sides.status().ok()) return sides.status();
  std::mt19937 random(options.seed);
  FillFinite(sides.staging(), sides.bytes(), false, random);
  HostCopy copy(sides);
  for (const AdasumStep& step : StepsAt(shape, reinterpret_cast<uintptr_t>(copy.memory()))) {
    const Result<std::vector<AdasumLaunch>> launches = PlanAdasumStep(step);
    if (!launches.ok()) return launches.status();
    for (const AdasumLaunch& launch : *launches) PlayAdasum(launch);
  }
  HVD_RETURN_IF_ERROR(sides.CopyIn());
  for (const AdasumStep& step : StepsAt(shape, sides.address()))
    HVD_RETURN_IF_ERROR(device.Adasum(step));
  HVD_RETURN_IF_ERROR(sides.CopyOut());
  HVD_RETURN_IF_ERROR(AwaitAll(device, options));
  return copy.Compare();
}

}  // namespace

std::vector<GpuCheck> RunAdasumChecks(Device& device, const GpuCheckOptions& options) {
  std::vector<GpuCheck> checks;
  for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBfloat16, DType::kFloat64}) {
    for (uint32_t vectors : {2U, 5U}) {
      for (uint64_t shift : {uint64_t{0}, uint64_t{SizeOf(dtype)}}) {
        const AdasumShape shape{dtype, vectors, 30001, shift};
        checks.push_back({"Adasum of " + std::to_string(vectors) + " vectors of " +
                              std::string(NameOf(dtype)) + (shift == 0 ? ", aligned" : ""),
                          CompareAdasum(device, shape, options).message()});
      }
    }
  }
  return checks;
}

Result<GpuFigure> MeasureAdasum(Device& device, const GpuCheckOptions& options) {
  constexpr uint32_t kVectors = 4;
  const AdasumShape shape{DType::kFloat32, kVectors,
                          options.figure_bytes / kVectors / sizeof(float)};
  TwoSides sides(device, AdasumPlaces(shape).end);
  if (!sides.status().ok()) return sides.status();
  std::mt19937 random(options.seed);
  FillFinite(sides.staging(), sides.bytes(), false, random);
  HVD_RETURN_IF_ERROR(sides.CopyIn());
  HVD_RETURN_IF_ERROR(AwaitAll(device, options));
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < options.figure_rounds; ++round) {
    const double begin = options.now();
    for (int move = 0; move < options.moves_in_a_round; ++move) {
      for (const AdasumStep& step : StepsAt(shape, sides.address()))
        HVD_RETURN_IF_ERROR(device.Adasum(step));
    }
    HVD_RETURN_IF_ERROR(AwaitAll(device, options));
    best = std::min(best, options.now() - begin);
  }
  const double bytes = static_cast<double>(shape.elements) * sizeof(float) * (2 * kVectors + 1);
  return GpuFigure{"Adasum of 4 vectors of float32", options.moves_in_a_round * bytes / best / 1e9};
}

}  // namespace hvd::test
