#include "runtime/device/host_reduce.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "runtime/device/host_reduce_kernels.h"

namespace hvd {
namespace {

struct Variant {
  std::string_view name;
  const Kernels* kernels;
};

#if defined(__x86_64__)
// __builtin_cpu_supports("f16c") is not known to every clang.
bool HasF16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

Variant Choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    return {"avx512", &kKernelsAvx512};
  }
  if (__builtin_cpu_supports("avx2") && HasF16c()) {
    return {"avx2", &kKernelsAvx2};
  }
#endif
  return {"baseline", &kKernelsBaseline};
}

const Variant& Chosen() {
  static const Variant variant = Choose();
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
