// L-BFGS: a local minimum of a smooth function of a few variables.
#ifndef HVD_AUTOTUNE_MINIMISER_H_
#define HVD_AUTOTUNE_MINIMISER_H_

#include <functional>
#include <vector>

namespace hvd {

// The value at `x`; its gradient into *gradient, which has the size of `x`. A value that is not
// finite excludes the region.
using SmoothFunction =
    std::function<double(const std::vector<double>& x, std::vector<double>* gradient)>;

struct Minimum {
  std::vector<double> x;
  double value = 0;
};

// Descends from `start` for at most `most_steps` steps. The result is never above the start value.
Minimum Minimise(const SmoothFunction& function, std::vector<double> start, int most_steps);

}  // namespace hvd

#endif  // HVD_AUTOTUNE_MINIMISER_H_
