// The arithmetic of AdasumWeights, shared by the CPU code and the GPU kernels. Includes no header
// with functions, because nvcc and NVRTC compile it too.
#ifndef HVD_RUNTIME_DEVICE_ADASUM_TREE_H_
#define HVD_RUNTIME_DEVICE_ADASUM_TREE_H_

#ifdef __CUDACC__
#define HVD_TREE_FUNCTION __device__ __forceinline__
#else
#define HVD_TREE_FUNCTION inline
#endif

namespace hvd::adasum {

// A norm smaller than its terms by this factor is rounding error: the vector is 0.
inline constexpr double kCancelled = 1e-14;

struct Sum {
  double value, magnitude;
};

// The inputs [begin, end), combined with the current weights.
struct Node {
  unsigned begin, end;
};

// Dot products of `inputs` vectors, as AddDotProducts stores them, and the weights.
struct Tree {
  const double* products;
  double* weights;
  unsigned inputs;
};

HVD_TREE_FUNCTION double ProductOf(const Tree& tree, unsigned i, unsigned j) {
  const unsigned long row = i < j ? i : j, column = i < j ? j : i;  // NOLINT(google-runtime-int)
  return tree.products[row * tree.inputs - row * (row + 1) / 2 + column];
}

HVD_TREE_FUNCTION Sum DotOf(const Tree& tree, Node a, Node b) {
  Sum sum{0, 0};
  for (unsigned i = a.begin; i < a.end; ++i) {
    for (unsigned j = b.begin; j < b.end; ++j) {
      const double term = tree.weights[i] * tree.weights[j] * ProductOf(tree, i, j);
      sum.value += term;
      sum.magnitude += term < 0 ? -term : term;
    }
  }
  return sum;
}

HVD_TREE_FUNCTION double FactorOf(double dot, Sum norm) {
  if (norm.value <= kCancelled * norm.magnitude) return 1.0;
  return 1.0 - dot / (2.0 * norm.value);
}

HVD_TREE_FUNCTION void Combine(const Tree& tree, Node a, Node b) {
  const double dot = DotOf(tree, a, b).value;
  const double of_a = FactorOf(dot, DotOf(tree, a, a)), of_b = FactorOf(dot, DotOf(tree, b, b));
  for (unsigned i = a.begin; i < a.end; ++i) tree.weights[i] *= of_a;
  for (unsigned i = b.begin; i < b.end; ++i) tree.weights[i] *= of_b;
}

// Level by level: nodes of 1, 2, 4, ... inputs; the last one of a level may have fewer, and moves
// up unchanged if it has no partner.
HVD_TREE_FUNCTION void Weigh(const Tree& tree) {
  for (unsigned i = 0; i < tree.inputs; ++i) tree.weights[i] = 1.0;
  for (unsigned width = 1; width < tree.inputs; width *= 2) {
    for (unsigned begin = 0; tree.inputs - begin > width; begin += 2 * width) {
      const unsigned middle = begin + width, rest = tree.inputs - middle;
      Combine(tree, {begin, middle}, {middle, middle + (rest < width ? rest : width)});
      if (rest <= width) break;
    }
  }
}

}  // namespace hvd::adasum

#endif  // HVD_RUNTIME_DEVICE_ADASUM_TREE_H_
