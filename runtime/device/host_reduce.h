// Elementwise reduction of host memory. Vector code is chosen once, at run time, by what the processor can do.
#ifndef HVD_RUNTIME_DEVICE_HOST_REDUCE_H_
#define HVD_RUNTIME_DEVICE_HOST_REDUCE_H_

#include <cstddef>
#include <span>
#include <string_view>

#include "runtime/device/dtype.h"

namespace hvd {

enum class Arithmetic : unsigned char { kSum, kMin, kMax, kProduct };

// Scales other than 1 multiply each input (prescale) and the result (postscale): integers in double and truncated,
// half types in float32, float32 and float64 in their own precision. Integers wrap around.
struct ReduceSpec {
  DType dtype = DType::kFloat32;
  Arithmetic arithmetic = Arithmetic::kSum;
  double prescale = 1.0;
  double postscale = 1.0;
  double divisor = 1.0;  // of the scaled result; an integer is divided and truncated
};

// False for types without arithmetic here (bool, float8).
bool CanReduce(DType dtype);

// For each i in [first, first + count): combines inputs[0][i], inputs[1][i], ... in that order, and stores the result in
// every outputs[k][i]. Half types are accumulated in float32 and rounded once. The result depends on the order of the
// inputs only, not on first, count or the processor. An output may be one of the inputs; otherwise nothing overlaps.
// 1 to 4,096 inputs.
void ReduceRange(const ReduceSpec& spec, std::span<const void* const> inputs,
                 std::span<void* const> outputs, size_t first, size_t count);

// "baseline", "avx2" or "avx512": the variant in use.
std::string_view ReduceVariant();

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_HOST_REDUCE_H_
