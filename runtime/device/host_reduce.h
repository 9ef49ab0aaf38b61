// Elementwise reduction of host memory. Vector code is chosen once, at run time, by what the
// processor can do.
#ifndef HVD_RUNTIME_DEVICE_HOST_REDUCE_H_
#define HVD_RUNTIME_DEVICE_HOST_REDUCE_H_

#include <cstddef>
#include <span>

#include "runtime/device/arithmetic.h"
#include "runtime/device/dtype.h"

namespace hvd {

// Scales other than 1 multiply each input (prescale) and the result (postscale): integers in double
// and truncated, half and float8 types in float32, float32 and float64 in their own precision; a
// bool is true when its product is not 0. Integers wrap around. For bool, sum and max are "or",
// product and min are "and".
struct ReduceSpec {
  DType dtype = DType::kFloat32;
  Arithmetic arithmetic = Arithmetic::kSum;
  double prescale = 1.0;
  double postscale = 1.0;
  double divisor = 1.0;  // of the scaled result; an integer is divided and truncated
};

// Sum, min, max and product are known for every type; but an average of truth values is none.
constexpr bool CanAverage(DType dtype) { return dtype != DType::kBool; }
bool CanAdasum(DType dtype);

// For each i in [first, first + count): combines inputs[0][i], inputs[1][i], ... in that order, and
// stores the result in every outputs[k][i]. Half and float8 types are accumulated in float32 and
// rounded once. The result depends on the order of the inputs only, not on first, count or the
// processor. An output may be one of the inputs; otherwise nothing overlaps. 1 to 4,096 inputs.
void ReduceRange(const ReduceSpec& spec, std::span<const void* const> inputs,
                 std::span<void* const> outputs, size_t first, size_t count);

// For types that are accumulated in float32 and are narrower (IsNarrow): the two halves of
// ReduceRange, for a sum that is made in several places and rounded once. The first leaves out
// postscale and divisor and stores floats at [first, ...).
constexpr bool IsNarrow(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBfloat16 || dtype == DType::kFloat8E4m3 ||
         dtype == DType::kFloat8E5m2;
}
void WideReduceRange(const ReduceSpec& spec, std::span<const void* const> inputs, float* output,
                     size_t first, size_t count);
void NarrowRange(DType dtype, const float* input, void* output, size_t count);

// The parts of Adasum that touch every element, for the types of CanAdasum, in float64. Like the
// reduction they depend on the order of the inputs only; dot products also on where a range begins
// and ends.

// Adds to `products` the dot product of inputs[i] and inputs[j] over [first, first + count), for
// each i <= j: (0, 0), (0, 1), ... (0, n - 1), (1, 1), ... (n - 1, n - 1).
void AddDotProducts(DType dtype, std::span<const void* const> inputs, size_t first, size_t count,
                    std::span<double> products);

// Stores the sum of weights[k] * inputs[k][i] in every output, rounded to the type at the end.
// Aliases as in ReduceRange.
void WeightedSumRange(DType dtype, std::span<const void* const> inputs,
                      std::span<const double> weights, std::span<void* const> outputs, size_t first,
                      size_t count);

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_HOST_REDUCE_H_
