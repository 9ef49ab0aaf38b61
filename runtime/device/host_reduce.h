// Elementwise reduction of host memory. The vector code is selected once at run time by CPU
// features.
#ifndef HVD_RUNTIME_DEVICE_HOST_REDUCE_H_
#define HVD_RUNTIME_DEVICE_HOST_REDUCE_H_

#include <cstddef>
#include <span>

#include "runtime/device/dtype.h"

namespace hvd {

// Scales other than 1 multiply each input (prescale) and the result (postscale): integers in double
// and truncated, half and float8 types in float32, float32 and float64 in their own precision. A
// bool is true if its product is not 0. For bool, sum and max are "or", product and min are "and".
// Integers wrap around; but an integer sum that is scaled or divided afterwards is computed in a
// type that holds it (AccumulatorOf), and only the result wraps around.
struct ReduceSpec {
  DType dtype = DType::kFloat32;
  Arithmetic arithmetic = Arithmetic::kSum;
  double prescale = 1.0;
  double postscale = 1.0;
  // Divides the scaled result. A whole number for integers: the exact sum is divided and truncated
  // towards zero.
  double divisor = 1.0;
};

// Sum, min, max and product are defined for every type; an average of bools is not.
constexpr bool CanAverage(DType dtype) { return dtype != DType::kBool; }
bool CanAdasum(DType dtype);

// For each i in [first, first + count): combines inputs[0][i], inputs[1][i], ... in that order and
// stores the result in every outputs[k][i]. Half and float8 types are accumulated in float32 and
// rounded once. The result depends only on the order of the inputs, not on first, count or the CPU.
// An output may be one of the inputs; otherwise nothing overlaps. 1 to 4,096 inputs.
void ReduceRange(const ReduceSpec& spec, std::span<const void* const> inputs,
                 std::span<void* const> outputs, size_t first, size_t count);

constexpr bool IsInteger(DType dtype) { return dtype <= DType::kInt64; }
// Types narrower than float32 that are accumulated in it.
constexpr bool IsNarrow(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBfloat16 || dtype == DType::kFloat8E4m3 ||
         dtype == DType::kFloat8E5m2;
}
// The type in which ReduceRange accumulates elements of this type. For integers it is used if the
// sum is scaled or divided afterwards: 2^32 of them fit, whatever their values.
constexpr DType AccumulatorOf(DType dtype) {
  if (IsNarrow(dtype)) return DType::kFloat32;
  if (dtype == DType::kInt64) return DType::kInt128;
  return IsInteger(dtype) ? DType::kInt64 : dtype;
}

// The two halves of ReduceRange, for a reduction done in several places and rounded once; for
// integers and the types of IsNarrow. The first omits postscale and divisor and stores
// AccumulatorOf elements at [first, ...); for integers it only sums.
void WideReduceRange(const ReduceSpec& spec, std::span<const void* const> inputs, void* output,
                     size_t first, size_t count);
void NarrowRange(DType dtype, const void* input, void* output, size_t count);

// The elementwise parts of Adasum, for the types of CanAdasum, in float64. Like the reduction they
// depend only on the order of the inputs; dot products also on where a range begins and ends.

// Adds to `products` the dot product of inputs[i] and inputs[j] over [first, first + count), for
// each i <= j: (0, 0), (0, 1), ... (0, n - 1), (1, 1), ... (n - 1, n - 1).
void AddDotProducts(DType dtype, std::span<const void* const> inputs, size_t first, size_t count,
                    std::span<double> products);

// Stores the sum of weights[k] * inputs[k][i] in every output, rounded once to the type. Aliasing
// as in ReduceRange.
void WeightedSumRange(DType dtype, std::span<const void* const> inputs,
                      std::span<const double> weights, std::span<void* const> outputs, size_t first,
                      size_t count);

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_HOST_REDUCE_H_
