// The arithmetic of kernels.cu: many pieces of memory moved, scaled and converted by one launch.
// The same text is compiled by nvcc for the device and by the host's compiler for tests, where a
// loop plays the blocks and threads.
//
// A block works on one tile of one segment; which one, it finds by its number. Everything that nvcc
// sees is here, so no header with functions is included.
#ifndef HVD_RUNTIME_DEVICE_CUDA_BATCH_KERNEL_H_
#define HVD_RUNTIME_DEVICE_CUDA_BATCH_KERNEL_H_

// HVD_ANY_MEMORY: a type through which memory of any type is read and written.
#ifdef __CUDACC__
#define HVD_BATCH_FUNCTION __device__ __forceinline__
#define HVD_ANY_MEMORY
#else
#define HVD_BATCH_FUNCTION inline
#define HVD_ANY_MEMORY __attribute__((may_alias))
#endif

namespace hvd {

using Word64 = unsigned long;  // NOLINT(google-runtime-int): std::uint64_t for both compilers
using Word32 = unsigned;
using Word16 = unsigned short;  // NOLINT(google-runtime-int)
using Word8 = unsigned char;

// How elements are treated. The first nine are kSomething = 3 * from + to with the types in the
// order float32, float16, bfloat16.
enum class BatchKind : Word32 {
  kFloat32 = 0,
  kFloat32ToFloat16 = 1,
  kFloat32ToBfloat16 = 2,
  kFloat16ToFloat32 = 3,
  kFloat16 = 4,
  kFloat16ToBfloat16 = 5,
  kBfloat16ToFloat32 = 6,
  kBfloat16ToFloat16 = 7,
  kBfloat16 = 8,
  kFloat64 = 9,
  kBytes = 10,  // any type, as it is
};

struct BatchSegment {
  Word64 from;
  Word64 to;
  Word64 elements;    // bytes if the kind is kBytes
  Word32 first_tile;  // its number in the launch; ascending
  Word32 unused;
};

struct BatchHead {
  double scale;
  Word32 segments;
  Word32 tile_elements;  // a multiple of 16
  BatchKind kind;
  Word32 unused;
};

// The one argument of a kernel, by value. A launch may have 4 KiB of arguments on every driver, and
// 32,764 bytes from CUDA 12.1 on.
template <unsigned kSegments>
struct BatchArguments {
  BatchHead head;
  BatchSegment segment[kSegments];
};
inline constexpr unsigned kSmallBatch = 126;
inline constexpr unsigned kLargeBatch = 1022;
inline constexpr unsigned kBatchThreads = 256;

namespace batch {

HVD_BATCH_FUNCTION float FloatOf(Word32 bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  return __builtin_bit_cast(float, bits);
#endif
}
HVD_BATCH_FUNCTION Word32 BitsOf(float x) {
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

HVD_BATCH_FUNCTION float Load(float x) { return x; }
HVD_BATCH_FUNCTION double Load(double x) { return x; }
HVD_BATCH_FUNCTION float Load(Brain x) { return FloatOf(static_cast<Word32>(x.bits) << 16); }
HVD_BATCH_FUNCTION float Load(Half x) {
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

// Rounded to nearest even; a NaN stays a NaN, and a value that is too large becomes infinite.
template <typename T>
struct Storer;
template <>
struct Storer<float> {
  static HVD_BATCH_FUNCTION float Store(float x) { return x; }
};
template <>
struct Storer<double> {
  static HVD_BATCH_FUNCTION double Store(double x) { return x; }
};
template <>
struct Storer<Brain> {
  static HVD_BATCH_FUNCTION Brain Store(float x) {
    const Word32 bits = BitsOf(x);
    const Word32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    return {static_cast<Word16>(nan ? (bits >> 16) | 0x40u : rounded)};
  }
};
template <>
struct Storer<Half> {
  static HVD_BATCH_FUNCTION Half Store(float x) {
#ifdef __CUDA_ARCH__
    Half half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(x));
    return half;
#else
    const Word32 bits = BitsOf(x) & 0x7fffffffu, sign = (BitsOf(x) >> 16) & 0x8000u;
    const Word32 normal = ((bits + 0xfffu + ((bits >> 13) & 1u)) >> 13) - (112u << 10);
    // Adding a half rounds a smaller number to multiples of the smallest subnormal.
    const Word32 subnormal = BitsOf(FloatOf(bits) + FloatOf(126u << 23)) - (126u << 23);
    const Word32 finite = bits < (113u << 23) ? subnormal : normal;
    const Word32 special = bits > 0x7f800000u ? 0x7e00u : 0x7c00u;
    return {static_cast<Word16>((bits >= 0x47800000u ? special : finite) | sign)};
#endif
  }
};

// Eight elements that are read and written at once.
template <typename T>
struct HVD_ANY_MEMORY Eight {
  alignas(16) T value[8];
};

template <typename T>
HVD_BATCH_FUNCTION T* At(Word64 address) {
  return reinterpret_cast<T*>(address);
}

template <typename T>
HVD_BATCH_FUNCTION bool IsAligned(Word64 address) {
  return address % alignof(Eight<T>) == 0;
}

// The share of one thread in elements [first, end) of a segment.
template <typename From, typename To, typename Scale>
HVD_BATCH_FUNCTION void Convert(const BatchSegment& segment, Word64 first, Word64 end, Scale scale,
                                Word32 thread, Word32 threads) {
  const From* from = At<From>(segment.from);
  To* to = At<To>(segment.to);
  Word64 rest = first;
  if (IsAligned<From>(segment.from) && IsAligned<To>(segment.to)) {  // so is each tile
    rest += (end - first) / 8 * 8;
    for (Word64 i = first + thread * 8; i < rest; i += threads * 8) {
      const Eight<From> in = *At<const Eight<From>>(segment.from + i * sizeof(From));
      Eight<To> out;
      for (int k = 0; k < 8; ++k) out.value[k] = Storer<To>::Store(Load(in.value[k]) * scale);
      *At<Eight<To>>(segment.to + i * sizeof(To)) = out;
    }
  }
  for (Word64 i = rest + thread; i < end; i += threads) {
    to[i] = Storer<To>::Store(Load(from[i]) * scale);
  }
}

// A copy of 16 bytes at a time, or of single ones where the addresses are not aligned alike.
struct HVD_ANY_MEMORY Bytes16 {
  alignas(16) Word32 word[4];
};
struct HVD_ANY_MEMORY Bytes4 {
  Word32 word;
};
HVD_BATCH_FUNCTION void Copy(const BatchSegment& segment, Word64 first, Word64 end, Word32 thread,
                             Word32 threads) {
  Word64 rest = first;
  if ((segment.from | segment.to) % sizeof(Bytes16) == 0) {
    rest += (end - first) / 16 * 16;
    for (Word64 i = first + thread * 16; i < rest; i += threads * 16) {
      *At<Bytes16>(segment.to + i) = *At<const Bytes16>(segment.from + i);
    }
  } else if ((segment.from | segment.to) % sizeof(Bytes4) == 0) {
    rest += (end - first) / 4 * 4;
    for (Word64 i = first + thread * 4; i < rest; i += threads * 4) {
      *At<Bytes4>(segment.to + i) = *At<const Bytes4>(segment.from + i);
    }
  }
  for (Word64 i = rest + thread; i < end; i += threads) {
    *At<Word8>(segment.to + i) = *At<const Word8>(segment.from + i);
  }
}

// The last segment that begins at `tile` or before.
HVD_BATCH_FUNCTION Word32 SegmentOf(const BatchSegment* segment, Word32 segments, Word32 tile) {
  Word32 low = 0;
  for (Word32 high = segments; high - low > 1;) {
    const Word32 middle = low + (high - low) / 2;
    (segment[middle].first_tile <= tile ? low : high) = middle;
  }
  return low;
}

}  // namespace batch

// The work of thread number `thread` of `threads` in block number `tile`.
HVD_BATCH_FUNCTION void RunBatch(const BatchHead& head, const BatchSegment* segments, Word32 tile,
                                 Word32 thread, Word32 threads) {
  using batch::Brain;
  using batch::Convert;
  using batch::Half;
  const BatchSegment& s = segments[batch::SegmentOf(segments, head.segments, tile)];
  const Word64 a = static_cast<Word64>(tile - s.first_tile) * head.tile_elements;
  const Word64 b = s.elements - a < head.tile_elements ? s.elements : a + head.tile_elements;
  const auto scale = static_cast<float>(head.scale);
  switch (head.kind) {
    case BatchKind::kFloat32: return Convert<float, float>(s, a, b, scale, thread, threads);
    case BatchKind::kFloat32ToFloat16: return Convert<float, Half>(s, a, b, scale, thread, threads);
    case BatchKind::kFloat32ToBfloat16:
      return Convert<float, Brain>(s, a, b, scale, thread, threads);
    case BatchKind::kFloat16ToFloat32: return Convert<Half, float>(s, a, b, scale, thread, threads);
    case BatchKind::kFloat16: return Convert<Half, Half>(s, a, b, scale, thread, threads);
    case BatchKind::kFloat16ToBfloat16:
      return Convert<Half, Brain>(s, a, b, scale, thread, threads);
    case BatchKind::kBfloat16ToFloat32:
      return Convert<Brain, float>(s, a, b, scale, thread, threads);
    case BatchKind::kBfloat16ToFloat16:
      return Convert<Brain, Half>(s, a, b, scale, thread, threads);
    case BatchKind::kBfloat16: return Convert<Brain, Brain>(s, a, b, scale, thread, threads);
    case BatchKind::kFloat64: return Convert<double, double>(s, a, b, head.scale, thread, threads);
    case BatchKind::kBytes: return batch::Copy(s, a, b, thread, threads);
  }
}

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_BATCH_KERNEL_H_
