// The element types of the kernels: how each is loaded and stored. Compiled by nvcc for the device,
// by the host compiler for tests, and by NVRTC if a driver rejects nvcc's output: so nothing that
// nvcc sees may include a header with functions.
//
// Every function gives the same bits as host_reduce, except for NaNs.
#ifndef HVD_RUNTIME_DEVICE_CUDA_KERNEL_ELEMENTS_H_
#define HVD_RUNTIME_DEVICE_CUDA_KERNEL_ELEMENTS_H_

// HVD_ANY_MEMORY: marks a type that may alias memory of any type.
#ifdef __CUDACC__
#define HVD_KERNEL_FUNCTION __device__ __forceinline__
#define HVD_ANY_MEMORY
#else
#define HVD_KERNEL_FUNCTION inline
#define HVD_ANY_MEMORY __attribute__((may_alias))
#endif

namespace hvd {

using Word64 = unsigned long;  // NOLINT(google-runtime-int): std::uint64_t for both compilers
using Word32 = unsigned;
using Word16 = unsigned short;  // NOLINT(google-runtime-int)
using Word8 = unsigned char;

// The element type of memory, for a kernel.
enum class KernelElement : Word32 {
  kFloat32 = 0,
  kFloat16 = 1,
  kBfloat16 = 2,
  kFloat8E4m3 = 3,
  kFloat8E5m2 = 4,
  kFloat64 = 5,
  kBytes = 6,  // any type, copied unchanged
};

inline constexpr unsigned kKernelThreads = 256;

namespace kernel {

HVD_KERNEL_FUNCTION float FloatOf(Word32 bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  return __builtin_bit_cast(float, bits);
#endif
}
HVD_KERNEL_FUNCTION Word32 BitsOf(float x) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(x);
#else
  return __builtin_bit_cast(Word32, x);
#endif
}

struct HVD_ANY_MEMORY Half {
  Word16 bits;
};
struct HVD_ANY_MEMORY Brain {
  Word16 bits;
};
// float8_e4m3: no infinities, and all ones is NaN. float8_e5m2: the upper byte of a float16.
struct HVD_ANY_MEMORY Small4m3 {
  Word8 bits;
};
struct HVD_ANY_MEMORY Small5m2 {
  Word8 bits;
};

HVD_KERNEL_FUNCTION float Load(float x) { return x; }
HVD_KERNEL_FUNCTION double Load(double x) { return x; }
HVD_KERNEL_FUNCTION float Load(Brain x) { return FloatOf(static_cast<Word32>(x.bits) << 16); }
HVD_KERNEL_FUNCTION float Load(Half x) {
#ifdef __CUDA_ARCH__
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
  return value;
#else
  const Word32 rest = x.bits & 0x7fffu;
  const Word32 normal = (rest << 13) + (112u << 23);
  const Word32 special = (rest << 13) | 0x7f800000u | (rest > 0x7c00u ? 0x400000u : 0u);
  const Word32 subnormal = BitsOf(static_cast<float>(rest) * FloatOf(103u << 23));
  const Word32 finite = rest < 0x400u ? subnormal : normal;
  return FloatOf((rest >= 0x7c00u ? special : finite) | (x.bits & 0x8000u) << 16);
#endif
}
// Loads exponent and fraction as a float16, whose exponent range begins 8 lower, then scales.
HVD_KERNEL_FUNCTION float Load(Small4m3 x) {
  const Word32 rest = x.bits & 0x7fu, sign = x.bits & 0x80u;
  const float value = Load(Half{static_cast<Word16>(sign << 8 | rest << 7)}) * 256.0F;
  return rest == 0x7fu ? FloatOf(0x7fc00000u | sign << 24) : value;
}
HVD_KERNEL_FUNCTION float Load(Small5m2 x) {
  return Load(Half{static_cast<Word16>(static_cast<Word32>(x.bits) << 8)});
}

// |x|, given as bits, rounded to nearest even with kMantissa fraction bits. Must be less than the
// smallest number that rounds to infinity.
template <int kMantissa, int kBias>
HVD_KERNEL_FUNCTION Word32 RoundTo(Word32 bits) {
  constexpr int kShift = 23 - kMantissa;
  constexpr Word32 kRebias = static_cast<Word32>(127 - kBias) << kMantissa;
  constexpr Word32 kSmallestNormal = static_cast<Word32>(127 + 1 - kBias) << 23;
  // A number whose last bit has the weight of a subnormal's: adding it rounds.
  constexpr Word32 kMagic = static_cast<Word32>(127 + 24 - kBias - kMantissa) << 23;
  const Word32 normal =
      ((bits + (1u << (kShift - 1)) - 1 + ((bits >> kShift) & 1u)) >> kShift) - kRebias;
  const Word32 subnormal = BitsOf(FloatOf(bits) + FloatOf(kMagic)) - kMagic;
  return bits < kSmallestNormal ? subnormal : normal;
}

// Rounds once to nearest even; a NaN stays a NaN. A value that is too large becomes infinite, in
// float8_e4m3 a NaN.
template <typename T>
struct Storer;
template <>
struct Storer<float> {
  static HVD_KERNEL_FUNCTION float Store(float x) { return x; }
};
template <>
struct Storer<double> {
  static HVD_KERNEL_FUNCTION double Store(double x) { return x; }
};
template <>
struct Storer<Brain> {
  static HVD_KERNEL_FUNCTION Brain Store(float x) {
    const Word32 bits = BitsOf(x);
    const Word32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    return {static_cast<Word16>(nan ? (bits >> 16) | 0x40u : rounded)};
  }
};
template <>
struct Storer<Half> {
  static HVD_KERNEL_FUNCTION Half Store(float x) {
#ifdef __CUDA_ARCH__
    Half half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(x));
    return half;
#else
    constexpr Word32 kTooLarge = 0x477ff000u;  // 65520
    const Word32 bits = BitsOf(x) & 0x7fffffffu, sign = (BitsOf(x) >> 16) & 0x8000u;
    const Word32 small = RoundTo<10, 15>(bits);
    const Word32 special = bits > 0x7f800000u ? 0x7e00u : 0x7c00u;
    return {static_cast<Word16>((bits >= kTooLarge ? special : small) | sign)};
#endif
  }
};
template <>
struct Storer<Small4m3> {
  static HVD_KERNEL_FUNCTION Small4m3 Store(float x) {
    constexpr Word32 kTooLarge = 0x43f00000u;  // 480
    const Word32 bits = BitsOf(x) & 0x7fffffffu, sign = (BitsOf(x) >> 24) & 0x80u;
    const Word32 small = RoundTo<3, 7>(bits);
    return {static_cast<Word8>((bits >= kTooLarge ? 0x7fu : small) | sign)};
  }
};
template <>
struct Storer<Small5m2> {
  static HVD_KERNEL_FUNCTION Small5m2 Store(float x) {
    constexpr Word32 kTooLarge = 0x47800000u;  // 65536
    const Word32 bits = BitsOf(x) & 0x7fffffffu, sign = (BitsOf(x) >> 24) & 0x80u;
    const Word32 small = RoundTo<2, 15>(bits);
    const Word32 special = bits > 0x7f800000u ? 0x7fu : 0x7cu;
    return {static_cast<Word8>((bits >= kTooLarge ? special : small) | sign)};
  }
};

// kCount elements, aligned for access in words of at most 16 bytes.
template <typename T, int kCount>
struct HVD_ANY_MEMORY Several {
  static constexpr Word64 kBytes = sizeof(T) * kCount;
  alignas(kBytes < 16 ? kBytes : 16) T value[kCount];
};

template <typename T>
HVD_KERNEL_FUNCTION T* At(Word64 address) {
  return reinterpret_cast<T*>(address);
}

}  // namespace kernel
}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_KERNEL_ELEMENTS_H_
