// Adasum: the weight of each input in the result. Pairs are combined as
//   (1 - a.b / (2 |a|^2)) a  +  (1 - a.b / (2 |b|^2)) b
// level by level, (0, 1), (2, 3), ...; an odd last one moves up unchanged. Every intermediate
// vector is a weighted sum of the inputs, so the dot products of the inputs determine the weights
// and no intermediate vector is stored.
#ifndef HVD_RUNTIME_DEVICE_ADASUM_H_
#define HVD_RUNTIME_DEVICE_ADASUM_H_

#include <cstddef>
#include <span>
#include <vector>

namespace hvd {

// Number of dot products of `inputs` vectors, each pair once: see AddDotProducts.
constexpr size_t DotProductCount(size_t inputs) { return inputs * (inputs + 1) / 2; }

// The weight of each input. A vector of norm 0 gets the factor 1.
std::vector<double> AdasumWeights(std::span<const double> dot_products, size_t inputs);

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_ADASUM_H_
