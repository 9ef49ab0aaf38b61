// Adasum: how much of each input goes into the result. Pairs are combined as
//   (1 - a.b / (2 |a|^2)) a  +  (1 - a.b / (2 |b|^2)) b
// level by level, (0, 1), (2, 3), ...; the odd one passes. Every vector on the way is a weighted
// sum of the inputs, so the dot products of the inputs are enough to know the weights, and no
// vector in between is ever stored.
#ifndef HVD_RUNTIME_DEVICE_ADASUM_H_
#define HVD_RUNTIME_DEVICE_ADASUM_H_

#include <cstddef>
#include <span>
#include <vector>

namespace hvd {

// Dot products of `inputs` vectors, each pair once: see AddDotProducts.
constexpr size_t DotProductCount(size_t inputs) { return inputs * (inputs + 1) / 2; }

// The weight of each input. A vector of norm 0 keeps the factor 1.
std::vector<double> AdasumWeights(std::span<const double> dot_products, size_t inputs);

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_ADASUM_H_
