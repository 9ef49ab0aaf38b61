#include "runtime/device/host_reduce.h"

#include "runtime/device/host_reduce_kernels.h"

namespace hvd {
namespace {

struct Variant {
  std::string_view name;
  void (*reduce)(const KernelArgs&);
};

Variant Choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    return {"avx512", ReduceAvx512};
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) return {"avx2", ReduceAvx2};
#endif
  return {"baseline", ReduceBaseline};
}

const Variant& Chosen() {
  static const Variant variant = Choose();
  return variant;
}

}  // namespace

bool CanReduce(DType dtype) {
  return dtype != DType::kBool && dtype != DType::kFloat8E4m3 && dtype != DType::kFloat8E5m2;
}

void ReduceRange(const ReduceSpec& spec, std::span<const void* const> inputs,
                 std::span<void* const> outputs, size_t first, size_t count) {
  Chosen().reduce({spec.dtype, spec.arithmetic, spec.prescale, spec.postscale, spec.divisor,
                   inputs.data(), inputs.size(), outputs.data(), outputs.size(), first, count});
}

std::string_view ReduceVariant() { return Chosen().name; }

}  // namespace hvd
