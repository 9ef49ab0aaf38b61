#include "autotune/minimiser.h"

#include <cmath>
#include <cstddef>
#include <deque>
#include <utility>

namespace hvd {
namespace {

constexpr size_t kMemory = 6;
constexpr double kFlat = 1e-5;  // below this a gradient counts as 0
constexpr double kSame = 1e-9;  // below this a gain counts as 0
constexpr int kMostHalvings = 25;

using Vector = std::vector<double>;

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void Add(Vector* a, double scale, const Vector& b) {
  for (size_t i = 0; i < a->size(); ++i) (*a)[i] += scale * b[i];
}

struct Step {
  Vector moved, gradient_moved;
  double curvature = 0;
};

// The inverse of the curvature, estimated from the last steps, applied to the gradient.
Vector Direction(const std::deque<Step>& steps, const Vector& gradient) {
  Vector direction = gradient;
  std::vector<double> scales(steps.size());
  for (size_t i = steps.size(); i-- > 0;) {
    scales[i] = Dot(steps[i].moved, direction) / steps[i].curvature;
    Add(&direction, -scales[i], steps[i].gradient_moved);
  }
  if (!steps.empty()) {
    const Step& last = steps.back();
    const double scale = last.curvature / Dot(last.gradient_moved, last.gradient_moved);
    for (double& value : direction) value *= scale;
  } else if (const double length = std::sqrt(Dot(gradient, gradient)); length > 1) {
    for (double& value : direction) value /= length;
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    const double back = Dot(steps[i].gradient_moved, direction) / steps[i].curvature;
    Add(&direction, scales[i] - back, steps[i].moved);
  }
  for (double& value : direction) value = -value;
  return direction;
}

}  // namespace

Minimum Minimise(const SmoothFunction& function, Vector start, int most_steps) {
  Vector gradient(start.size());
  Minimum best{std::move(start), 0};
  best.value = function(best.x, &gradient);
  std::deque<Step> steps;
  for (int step = 0; step < most_steps && Dot(gradient, gradient) > kFlat * kFlat; ++step) {
    Vector direction = Direction(steps, gradient);
    double slope = Dot(direction, gradient);
    if (!(slope < 0)) {  // the estimated curvature misleads
      steps.clear();
      direction = Direction(steps, gradient);
      slope = Dot(direction, gradient);
    }
    Vector x, next_gradient(gradient.size());
    double value = best.value, length = 1;
    bool lower = false;
    for (int i = 0; i < kMostHalvings && !lower; ++i, length /= 2) {
      x = best.x;
      Add(&x, length, direction);
      value = function(x, &next_gradient);
      lower = std::isfinite(value) && value <= best.value + 1e-4 * length * slope;
    }
    if (!lower) break;
    Step made{x, next_gradient, 0};
    Add(&made.moved, -1, best.x);
    Add(&made.gradient_moved, -1, gradient);
    made.curvature = Dot(made.moved, made.gradient_moved);
    const double gained = best.value - value;
    best = {std::move(x), value};
    gradient = std::move(next_gradient);
    if (gained < kSame * (1 + std::abs(value))) break;
    if (made.curvature > 1e-12) steps.push_back(std::move(made));
    if (steps.size() > kMemory) steps.pop_front();
  }
  return best;
}

}  // namespace hvd
