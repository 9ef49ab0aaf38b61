#include "runtime/device/host_reduce.h"

#include "runtime/device/host_kernel_variants.h"

namespace hvd {

bool CanAdasum(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBfloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}

void ReduceRange(const ReduceSpec& spec, std::span<const void* const> inputs,
                 std::span<void* const> outputs, size_t first, size_t count) {
  KernelsInUse().kernels->reduce({spec.dtype, spec.arithmetic, spec.prescale, spec.postscale,
                                  spec.divisor, inputs.data(), inputs.size(), outputs.data(),
                                  outputs.size(), first, count});
}

void WideReduceRange(const ReduceSpec& spec, std::span<const void* const> inputs, void* output,
                     size_t first, size_t count) {
  KernelsInUse().kernels->wide_reduce({spec.dtype, spec.arithmetic, spec.prescale, 1.0, 1.0,
                                       inputs.data(), inputs.size(), &output, 1, first, count});
}

void NarrowRange(DType dtype, const void* input, void* output, size_t count) {
  KernelsInUse().kernels->narrow(
      {dtype, Arithmetic::kSum, 1.0, 1.0, 1.0, &input, 1, &output, 1, 0, count});
}

void AddDotProducts(DType dtype, std::span<const void* const> inputs, size_t first, size_t count,
                    std::span<double> products) {
  KernelsInUse().kernels->dot_products({dtype, Arithmetic::kSum, 1.0, 1.0, 1.0, inputs.data(),
                                        inputs.size(), nullptr, 0, first, count},
                                       products.data());
}

void WeightedSumRange(DType dtype, std::span<const void* const> inputs,
                      std::span<const double> weights, std::span<void* const> outputs, size_t first,
                      size_t count) {
  KernelsInUse().kernels->weighted_sum(
      {dtype, Arithmetic::kSum, 1.0, 1.0, 1.0, inputs.data(), inputs.size(), outputs.data(),
       outputs.size(), first, count},
      weights.data());
}

}  // namespace hvd
