// The batch kernels of kernels.cu: one launch moves, scales and converts many pieces of memory.
// Compiled by nvcc for the device and by the host compiler for tests, where a loop simulates the
// blocks and threads.
//
// A block processes one tile of one segment, which it looks up by its block index.
#ifndef HVD_RUNTIME_DEVICE_CUDA_BATCH_KERNEL_H_
#define HVD_RUNTIME_DEVICE_CUDA_BATCH_KERNEL_H_

#include "runtime/device/cuda/kernel_elements.h"

namespace hvd {

struct BatchSegment {
  Word64 from;
  Word64 to;
  Word64 elements;    // bytes for kBytes
  Word32 first_tile;  // index of its first tile in the launch; ascending
  Word32 unused;
};

struct BatchHead {
  double scale;
  Word32 segments;
  Word32 tile_elements;  // a multiple of 16
  // Any two of the first five types, or both kFloat64, or both kBytes.
  KernelElement from, to;
};

// The single argument of a kernel, by value. A launch may have 4 KiB of arguments on every driver,
// and 32,764 bytes from CUDA 12.1 on.
template <unsigned kSegments>
struct BatchArguments {
  BatchHead head;
  BatchSegment segment[kSegments];
};
inline constexpr unsigned kSmallBatch = 126;
inline constexpr unsigned kLargeBatch = 1022;

namespace batch {

using kernel::At;

template <typename T>
using Eight = kernel::Several<T, 8>;

template <typename T>
HVD_KERNEL_FUNCTION bool IsAligned(Word64 address) {
  return address % alignof(Eight<T>) == 0;
}

// One thread's share of elements [first, end) of a segment.
template <typename From, typename To, typename Scale>
HVD_KERNEL_FUNCTION void Convert(const BatchSegment& segment, Word64 first, Word64 end, Scale scale,
                                 Word32 thread, Word32 threads) {
  const From* from = At<From>(segment.from);
  To* to = At<To>(segment.to);
  Word64 rest = first;
  if (IsAligned<From>(segment.from) && IsAligned<To>(segment.to)) {  // then each tile is, too
    rest += (end - first) / 8 * 8;
    for (Word64 i = first + thread * 8; i < rest; i += threads * 8) {
      const Eight<From> in = *At<const Eight<From>>(segment.from + i * sizeof(From));
      Eight<To> out;
      for (int k = 0; k < 8; ++k)
        out.value[k] = kernel::Storer<To>::Store(kernel::Load(in.value[k]) * scale);
      *At<Eight<To>>(segment.to + i * sizeof(To)) = out;
    }
  }
  for (Word64 i = rest + thread; i < end; i += threads) {
    to[i] = kernel::Storer<To>::Store(kernel::Load(from[i]) * scale);
  }
}

// Copies 16 or 4 bytes at a time if both addresses are aligned to that, else single bytes.
struct HVD_ANY_MEMORY Bytes16 {
  alignas(16) Word32 word[4];
};
struct HVD_ANY_MEMORY Bytes4 {
  Word32 word;
};
HVD_KERNEL_FUNCTION void Copy(const BatchSegment& segment, Word64 first, Word64 end, Word32 thread,
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

// The last segment that begins at or before `tile`.
HVD_KERNEL_FUNCTION Word32 SegmentOf(const BatchSegment* segment, Word32 segments, Word32 tile) {
  Word32 low = 0;
  for (Word32 high = segments; high - low > 1;) {
    const Word32 middle = low + (high - low) / 2;
    (segment[middle].first_tile <= tile ? low : high) = middle;
  }
  return low;
}

template <typename From>
HVD_KERNEL_FUNCTION void ConvertFrom(const BatchHead& head, const BatchSegment& segment,
                                     Word64 first, Word64 end, Word32 thread, Word32 threads) {
  const auto scale = static_cast<float>(head.scale);
  switch (head.to) {
    case KernelElement::kFloat32:
      return Convert<From, float>(segment, first, end, scale, thread, threads);
    case KernelElement::kFloat16:
      return Convert<From, kernel::Half>(segment, first, end, scale, thread, threads);
    case KernelElement::kBfloat16:
      return Convert<From, kernel::Brain>(segment, first, end, scale, thread, threads);
    case KernelElement::kFloat8E4m3:
      return Convert<From, kernel::Small4m3>(segment, first, end, scale, thread, threads);
    case KernelElement::kFloat8E5m2:
      return Convert<From, kernel::Small5m2>(segment, first, end, scale, thread, threads);
    case KernelElement::kFloat64:
    case KernelElement::kBytes: return;  // not converted
  }
}

}  // namespace batch

// The work of thread `thread` of `threads` in block `tile`.
HVD_KERNEL_FUNCTION void RunBatch(const BatchHead& head, const BatchSegment* segments, Word32 tile,
                                  Word32 thread, Word32 threads) {
  using batch::ConvertFrom;
  const BatchSegment& s = segments[batch::SegmentOf(segments, head.segments, tile)];
  const Word64 a = static_cast<Word64>(tile - s.first_tile) * head.tile_elements;
  const Word64 b = s.elements - a < head.tile_elements ? s.elements : a + head.tile_elements;
  switch (head.from) {
    case KernelElement::kFloat32: return ConvertFrom<float>(head, s, a, b, thread, threads);
    case KernelElement::kFloat16: return ConvertFrom<kernel::Half>(head, s, a, b, thread, threads);
    case KernelElement::kBfloat16:
      return ConvertFrom<kernel::Brain>(head, s, a, b, thread, threads);
    case KernelElement::kFloat8E4m3:
      return ConvertFrom<kernel::Small4m3>(head, s, a, b, thread, threads);
    case KernelElement::kFloat8E5m2:
      return ConvertFrom<kernel::Small5m2>(head, s, a, b, thread, threads);
    case KernelElement::kFloat64:
      return batch::Convert<double, double>(s, a, b, head.scale, thread, threads);
    case KernelElement::kBytes: return batch::Copy(s, a, b, thread, threads);
  }
}

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_BATCH_KERNEL_H_
