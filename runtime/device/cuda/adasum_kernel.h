// Adasum on vectors in GPU memory, in float64 as on the host: the dot products of all pairs, the
// weights that follow from them, the weighted sum. Compiled by nvcc for the device and by the host
// compiler for tests, where loops simulate the blocks and threads.
//
// No result depends on the order in which blocks run: each writes its own partial sums, and a later
// launch adds them in index order.
#ifndef HVD_RUNTIME_DEVICE_CUDA_ADASUM_KERNEL_H_
#define HVD_RUNTIME_DEVICE_CUDA_ADASUM_KERNEL_H_

#include "runtime/device/adasum_tree.h"
#include "runtime/device/cuda/kernel_elements.h"

namespace hvd {

// The single argument of these kernels, by value; each uses the fields it needs. A triangle holds
// the products of all pairs, in the order of AddDotProducts.
struct AdasumArguments {
  // Vectors of one type and length: vector i begins at first + i * stride.
  Word64 first, stride, elements;
  Word32 count;
  KernelElement element;
  Word64 chunk_elements;   // per block, a multiple of 16
  Word32 chunks, unused;   // blocks per vector
  Word64 partials;         // double[chunks][pairs]: a triangle per chunk
  Word64 triangles;        // triangle i begins at triangles + i * triangle_stride
  Word64 triangle_stride;  // in bytes
  Word64 triangle_count;
  Word64 products;  // double[pairs]
  Word64 weights;   // double[count]
  double scale;     // multiplies all weights
  Word64 output;
};

// A block computes the products of this many vectors with this many others.
inline constexpr unsigned kAdasumGroup = 4;
inline constexpr unsigned kAdasumSums = kAdasumGroup * kAdasumGroup;
// Elements that each thread of the weighted sum computes at once.
inline constexpr unsigned kAdasumWidth = 8;

namespace adasum {

using kernel::At;

template <typename T>
using Four = kernel::Several<T, 4>;
template <typename T>
using Eight = kernel::Several<T, 8>;

HVD_KERNEL_FUNCTION Word64 PairsOf(Word64 count) { return count * (count + 1) / 2; }
HVD_KERNEL_FUNCTION Word32 GroupsOf(Word32 count) {
  return (count + kAdasumGroup - 1) / kAdasumGroup;
}

// Two groups of vectors; `tile` is an index into (0, 0), (0, 1), ... (0, g - 1), (1, 1), ...
struct GroupPair {
  Word32 row, column;
};
HVD_KERNEL_FUNCTION GroupPair GroupPairOf(Word32 count, Word32 tile) {
  const Word32 groups = GroupsOf(count);
  Word32 row = 0;
  for (; tile >= groups - row; ++row) tile -= groups - row;
  return {row, row + tile};
}

// ---- dot products

// Loads elements [i, i + 4) of the vectors of a group; 0 beyond the last vector.
template <typename T>
HVD_KERNEL_FUNCTION void LoadFour(const AdasumArguments& a, Word32 group, Word64 i,
                                  Four<T> (&values)[kAdasumGroup]) {
  for (Word32 k = 0; k < kAdasumGroup; ++k) {
    const Word32 vector = group * kAdasumGroup + k;
    if (vector < a.count)
      values[k] = *At<const Four<T>>(a.first + vector * a.stride + i * sizeof(T));
    else
      values[k] = Four<T>{};
  }
}
template <typename T>
HVD_KERNEL_FUNCTION void LoadOne(const AdasumArguments& a, Word32 group, Word64 i,
                                 double (&values)[kAdasumGroup]) {
  for (Word32 k = 0; k < kAdasumGroup; ++k) {
    const Word32 vector = group * kAdasumGroup + k;
    values[k] = vector < a.count ? static_cast<double>(kernel::Load(
                                       *At<const T>(a.first + vector * a.stride + i * sizeof(T))))
                                 : 0.0;
  }
}

HVD_KERNEL_FUNCTION void AddProducts(const double (&rows)[kAdasumGroup],
                                     const double (&columns)[kAdasumGroup],
                                     double (&sums)[kAdasumSums]) {
  for (Word32 r = 0; r < kAdasumGroup; ++r) {
    for (Word32 c = 0; c < kAdasumGroup; ++c) sums[r * kAdasumGroup + c] += rows[r] * columns[c];
  }
}

// One thread's share of elements [first, end).
template <typename T>
HVD_KERNEL_FUNCTION void AddDots(const AdasumArguments& a, GroupPair pair, Word64 first, Word64 end,
                                 Word32 thread, Word32 threads, double (&sums)[kAdasumSums]) {
  Word64 rest = first;
  double rows[kAdasumGroup], columns[kAdasumGroup];
  if ((a.first | a.stride) % alignof(Four<T>) == 0) {
    rest += (end - first) / 4 * 4;
    for (Word64 i = first + thread * 4; i < rest; i += threads * 4) {
      Four<T> in_rows[kAdasumGroup], in_columns[kAdasumGroup];
      LoadFour<T>(a, pair.row, i, in_rows);
      if (pair.row != pair.column) LoadFour<T>(a, pair.column, i, in_columns);
      for (int k = 0; k < 4; ++k) {
        for (Word32 g = 0; g < kAdasumGroup; ++g) {
          rows[g] = static_cast<double>(kernel::Load(in_rows[g].value[k]));
          columns[g] = pair.row == pair.column
                           ? rows[g]
                           : static_cast<double>(kernel::Load(in_columns[g].value[k]));
        }
        AddProducts(rows, columns, sums);
      }
    }
  }
  for (Word64 i = rest + thread; i < end; i += threads) {
    LoadOne<T>(a, pair.row, i, rows);
    LoadOne<T>(a, pair.column, i, columns);
    AddProducts(rows, columns, sums);
  }
}

}  // namespace adasum

// Step 1 of hvd_adasum_dots in block (chunk, tile): the sums of one thread go to
// shared[k * threads + thread].
HVD_KERNEL_FUNCTION void AdasumAddDots(const AdasumArguments& a, Word32 chunk, Word32 tile,
                                       Word32 thread, Word32 threads, double* shared) {
  using adasum::AddDots;
  const adasum::GroupPair pair = adasum::GroupPairOf(a.count, tile);
  const Word64 first = chunk * a.chunk_elements;
  const Word64 end = a.elements - first < a.chunk_elements ? a.elements : first + a.chunk_elements;
  double sums[kAdasumSums] = {};
  switch (a.element) {
    case KernelElement::kFloat32: AddDots<float>(a, pair, first, end, thread, threads, sums); break;
    case KernelElement::kFloat16:
      AddDots<kernel::Half>(a, pair, first, end, thread, threads, sums);
      break;
    case KernelElement::kBfloat16:
      AddDots<kernel::Brain>(a, pair, first, end, thread, threads, sums);
      break;
    case KernelElement::kFloat64:
      AddDots<double>(a, pair, first, end, thread, threads, sums);
      break;
    default: break;  // other types do not support Adasum
  }
  for (Word32 k = 0; k < kAdasumSums; ++k) shared[k * threads + thread] = sums[k];
}

// Step 2, for `half` from threads / 2 down to 1, by the threads below `half`, with a barrier after
// each.
HVD_KERNEL_FUNCTION void AdasumFoldThreads(double* shared, Word32 half, Word32 thread,
                                           Word32 threads) {
  for (Word32 k = 0; k < kAdasumSums; ++k)
    shared[k * threads + thread] += shared[k * threads + thread + half];
}

// Step 3, by the threads below kAdasumSums.
HVD_KERNEL_FUNCTION void AdasumStoreDots(const AdasumArguments& a, Word32 chunk, Word32 tile,
                                         Word32 thread, Word32 threads, const double* shared) {
  const adasum::GroupPair pair = adasum::GroupPairOf(a.count, tile);
  const Word64 row = pair.row * kAdasumGroup + thread / kAdasumGroup;
  const Word64 column = pair.column * kAdasumGroup + thread % kAdasumGroup;
  if (row > column || column >= a.count) return;
  const Word64 place = row * a.count - row * (row + 1) / 2 + column;
  *kernel::At<double>(a.partials + (chunk * adasum::PairsOf(a.count) + place) * sizeof(double)) =
      shared[thread * threads];
}

// hvd_adasum_fold: adds up the products of one pair in a fixed order of the chunks, in independent
// partial sums so that loads do not wait for each other.
HVD_KERNEL_FUNCTION void AdasumFoldChunks(const AdasumArguments& a, Word64 pair) {
  constexpr Word32 kParts = 16;
  const Word64 pairs = adasum::PairsOf(a.count);
  if (pair >= pairs) return;
  const double* partial = kernel::At<const double>(a.partials) + pair;
  double parts[kParts] = {};
  Word32 chunk = 0;
  for (; chunk + kParts <= a.chunks; chunk += kParts) {
    for (Word32 k = 0; k < kParts; ++k) parts[k] += partial[(chunk + k) * pairs];
  }
  for (Word32 k = 0; chunk + k < a.chunks; ++k) parts[k] += partial[(chunk + k) * pairs];
  double sum = 0;
  for (Word32 k = 0; k < kParts; ++k) sum += parts[k];
  kernel::At<double>(a.products)[pair] = sum;
}

// hvd_adasum_weigh, step 1: one thread's share of adding up the triangles, in order.
HVD_KERNEL_FUNCTION void AdasumAddTriangles(const AdasumArguments& a, Word32 thread,
                                            Word32 threads) {
  for (Word64 pair = thread; pair < adasum::PairsOf(a.count); pair += threads) {
    double sum = 0;
    for (Word64 i = 0; i < a.triangle_count; ++i)
      sum += kernel::At<const double>(a.triangles + i * a.triangle_stride)[pair];
    kernel::At<double>(a.products)[pair] = sum;
  }
}

// Step 2, by one thread.
HVD_KERNEL_FUNCTION void AdasumWeigh(const AdasumArguments& a) {
  auto* weights = kernel::At<double>(a.weights);
  adasum::Weigh({kernel::At<const double>(a.products), weights, a.count});
  for (Word32 k = 0; k < a.count; ++k) weights[k] *= a.scale;
}

// ---- the weighted sum

namespace adasum {

template <typename T>
struct Narrowed {
  using Type = float;  // rounded to float32 first, as on the host
};
template <>
struct Narrowed<double> {
  using Type = double;
};

template <typename T>
HVD_KERNEL_FUNCTION T Rounded(double sum) {
  return kernel::Storer<T>::Store(static_cast<typename Narrowed<T>::Type>(sum));
}

template <typename T>
HVD_KERNEL_FUNCTION void AddWeighted(const AdasumArguments& a, Word64 first) {
  const auto* weights = At<const double>(a.weights);
  const bool whole = first + kAdasumWidth <= a.elements &&
                     (a.first | a.stride | a.output) % alignof(Eight<T>) == 0;
  if (whole) {
    double sum[kAdasumWidth] = {};
    for (Word32 k = 0; k < a.count; ++k) {
      const Eight<T> in = *At<const Eight<T>>(a.first + k * a.stride + first * sizeof(T));
      for (Word32 i = 0; i < kAdasumWidth; ++i) {
        const double value = weights[k] * static_cast<double>(kernel::Load(in.value[i]));
        sum[i] = k == 0 ? value : sum[i] + value;
      }
    }
    Eight<T> out;
    for (Word32 i = 0; i < kAdasumWidth; ++i) out.value[i] = Rounded<T>(sum[i]);
    *At<Eight<T>>(a.output + first * sizeof(T)) = out;
    return;
  }
  for (Word64 i = first; i < a.elements && i < first + kAdasumWidth; ++i) {
    double sum = 0;
    for (Word32 k = 0; k < a.count; ++k) {
      const T in = *At<const T>(a.first + k * a.stride + i * sizeof(T));
      const double value = weights[k] * static_cast<double>(kernel::Load(in));
      sum = k == 0 ? value : sum + value;
    }
    *At<T>(a.output + i * sizeof(T)) = Rounded<T>(sum);
  }
}

}  // namespace adasum

// hvd_adasum_sum: elements [8 * place, 8 * place + 8), by one thread.
HVD_KERNEL_FUNCTION void AdasumAddWeighted(const AdasumArguments& a, Word64 place) {
  const Word64 first = place * kAdasumWidth;
  switch (a.element) {
    case KernelElement::kFloat32: return adasum::AddWeighted<float>(a, first);
    case KernelElement::kFloat16: return adasum::AddWeighted<kernel::Half>(a, first);
    case KernelElement::kBfloat16: return adasum::AddWeighted<kernel::Brain>(a, first);
    case KernelElement::kFloat64: return adasum::AddWeighted<double>(a, first);
    default: return;
  }
}

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_ADASUM_KERNEL_H_
