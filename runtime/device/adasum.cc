#include "runtime/device/adasum.h"

#include "runtime/device/adasum_tree.h"

namespace hvd {

std::vector<double> AdasumWeights(std::span<const double> dot_products, size_t inputs) {
  std::vector<double> weights(inputs);
  adasum::Weigh({dot_products.data(), weights.data(), static_cast<unsigned>(inputs)});
  return weights;
}

}  // namespace hvd
