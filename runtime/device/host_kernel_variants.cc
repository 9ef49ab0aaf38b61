#include "runtime/device/host_kernel_variants.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace hvd {
namespace {

#if defined(__x86_64__)
// Some versions of clang do not know __builtin_cpu_supports("f16c").
bool HasF16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

}  // namespace

std::vector<KernelVariant> RunnableKernelVariants() {
  std::vector<KernelVariant> variants = {{"baseline", &kKernelsBaseline}};
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && HasF16c();
  if (avx2) variants.push_back({"avx2", &kKernelsAvx2});
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    variants.push_back({"avx512", &kKernelsAvx512});
#endif
  return variants;
}

const KernelVariant& KernelsInUse() {
  static const KernelVariant variant = RunnableKernelVariants().back();
  return variant;
}

}  // namespace hvd
