// Relax: spin-loop hint to the CPU.
#ifndef HVD_RUNTIME_BASE_RELAX_H_
#define HVD_RUNTIME_BASE_RELAX_H_

namespace hvd {

inline void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_RELAX_H_
