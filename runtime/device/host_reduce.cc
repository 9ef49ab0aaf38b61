#include "runtime/device/host_reduce.h"

#include "runtime/device/host_reduce_variants.h"

namespace hvd {
namespace {

const ReduceVariantKernels& Chosen() {
  static const ReduceVariantKernels variant = RunnableReduceVariants().back();
  return variant;
}

}  // namespace

bool CanAdasum(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBfloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}

void ReduceRange(const ReduceSpec& spec, std::span<const void* const> inputs,
                 std::span<void* const> outputs, size_t first, size_t count) {
  Chosen().kernels->reduce({spec.dtype, spec.arithmetic, spec.prescale, spec.postscale,
                            spec.divisor, inputs.data(), inputs.size(), outputs.data(),
                            outputs.size(), first, count});
}

void WideReduceRange(const ReduceSpec& spec, std::span<const void* const> inputs, float* output,
                     size_t first, size_t count) {
  void* out = output;
  Chosen().kernels->wide_reduce({spec.dtype, spec.arithmetic, spec.prescale, 1.0, 1.0,
                                 inputs.data(), inputs.size(), &out, 1, first, count});
}

void NarrowRange(DType dtype, const float* input, void* output, size_t count) {
  const void* in = input;
  Chosen().kernels->narrow({dtype, Arithmetic::kSum, 1.0, 1.0, 1.0, &in, 1, &output, 1, 0, count});
}

void AddDotProducts(DType dtype, std::span<const void* const> inputs, size_t first, size_t count,
                    std::span<double> products) {
  Chosen().kernels->dot_products({dtype, Arithmetic::kSum, 1.0, 1.0, 1.0, inputs.data(),
                                  inputs.size(), nullptr, 0, first, count},
                                 products.data());
}

void WeightedSumRange(DType dtype, std::span<const void* const> inputs,
                      std::span<const double> weights, std::span<void* const> outputs, size_t first,
                      size_t count) {
  Chosen().kernels->weighted_sum({dtype, Arithmetic::kSum, 1.0, 1.0, 1.0, inputs.data(),
                                  inputs.size(), outputs.data(), outputs.size(), first, count},
                                 weights.data());
}

std::string_view ReduceVariant() { return Chosen().name; }

}  // namespace hvd
