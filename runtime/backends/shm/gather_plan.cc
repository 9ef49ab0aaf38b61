#include "runtime/backends/shm/gather_plan.h"

#include <cstdint>
#include <numeric>

#include "runtime/backends/shm/chunking.h"
#include "runtime/device/adasum.h"

namespace hvd {
namespace {

void PlanAllgather(const CollectiveCall& call, std::span<const Extent> extents, GatherPlan* plan) {
  const uint32_t members = call.group->local_size();
  for (uint32_t m = 0; m < members; ++m) {
    const int64_t rows = extents[m].rows;
    const size_t bytes = static_cast<size_t>(rows) * call.row_bytes();
    plan->pieces.push_back({m, 0, plan->bytes, bytes});
    plan->rows += rows;
    plan->bytes += bytes;
  }
}

void PlanAlltoall(const CollectiveCall& call, std::span<const Extent> extents, GatherPlan* plan) {
  const uint32_t members = call.group->local_size(), self = call.group->local_index;
  for (uint32_t m = 0; m < members; ++m) {
    const std::span<const int64_t> splits = extents[m].splits;
    const int64_t before = std::accumulate(splits.begin(), splits.begin() + self, int64_t{0});
    const int64_t rows = splits[self];
    const size_t bytes = static_cast<size_t>(rows) * call.row_bytes();
    plan->pieces.push_back({m, static_cast<size_t>(before) * call.row_bytes(), plan->bytes, bytes});
    plan->received_splits.push_back(rows);
    plan->rows += rows;
    plan->bytes += bytes;
  }
}

}  // namespace

GatherPlan PlanGather(const CollectiveCall& call, std::span<const Extent> extents) {
  GatherPlan plan;
  if (call.collective == Collective::kAllgather) {
    PlanAllgather(call, extents, &plan);
  } else if (call.collective == Collective::kAlltoall) {
    PlanAlltoall(call, extents, &plan);
  } else if (call.collective == Collective::kReducescatter) {
    const RowRange rows = RowsOf(call.group->local_index, call.rows, call.group->local_size());
    plan.reduced = {static_cast<size_t>(rows.first) * call.row_count,
                    static_cast<size_t>(rows.count) * call.row_count};
    plan.rows = rows.count;
    plan.bytes = plan.reduced.count * SizeOf(call.dtype);
  } else {
    plan.rows = call.rows;
    plan.bytes = call.bytes();
    plan.pieces.push_back({call.root, 0, 0, call.bytes()});
  }
  return plan;
}

Arithmetic ArithmeticOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kMin: return Arithmetic::kMin;
    case ReduceOp::kMax: return Arithmetic::kMax;
    case ReduceOp::kProduct: return Arithmetic::kProduct;
    default: return Arithmetic::kSum;
  }
}

ReduceSpec SpecOf(const CollectiveCall& call, uint32_t divisor) {
  return {call.dtype, ArithmeticOf(call.op), call.prescale, call.postscale,
          static_cast<double>(divisor)};
}

// A factor common to all inputs does not change the weights, so the scales are applied once, at the
// end.
std::vector<double> ScaledAdasumWeights(const CollectiveCall& call,
                                        std::span<const double> dot_products,
                                        uint32_t participants) {
  std::vector<double> weights = AdasumWeights(dot_products, participants);
  for (double& weight : weights) weight *= call.prescale * call.postscale;
  return weights;
}

void CombineAll(const CollectiveCall& call, std::span<const void* const> inputs, void* output) {
  const auto participants = static_cast<uint32_t>(inputs.size());
  if (call.op != ReduceOp::kAdasum) {
    const uint32_t divisor = DivisorOf(call.op, call.group->size(), participants);
    return ReduceRange(SpecOf(call, divisor), inputs, {&output, 1}, 0, call.count);
  }
  std::vector<double> products(DotProductCount(participants), 0.0);
  AddDotProducts(call.dtype, inputs, 0, call.count, products);
  const std::vector<double> weights = ScaledAdasumWeights(call, products, participants);
  WeightedSumRange(call.dtype, inputs, weights, {&output, 1}, 0, call.count);
}

bool OutputOverlapsInput(const CollectiveCall& call, size_t output_bytes) {
  auto in = reinterpret_cast<uintptr_t>(call.input), out = reinterpret_cast<uintptr_t>(call.output);
  return call.output != nullptr && in < out + output_bytes && out < in + call.bytes();
}

}  // namespace hvd
