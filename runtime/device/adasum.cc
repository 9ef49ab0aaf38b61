#include "runtime/device/adasum.h"

#include <algorithm>
#include <cmath>

namespace hvd {
namespace {

// A norm that is so much smaller than the terms it is made of is rounding error: the vector is 0.
constexpr double kCancelled = 1e-14;

// The inputs [begin, end), combined with the weights found so far.
struct Node {
  size_t begin, end;
};

class Tree {
 public:
  Tree(std::span<const double> products, size_t inputs)
      : products_(products), inputs_(inputs), weights_(inputs, 1.0) {}

  std::vector<double> Weights() {
    std::vector<Node> level;
    for (size_t i = 0; i < inputs_; ++i) level.push_back({i, i + 1});
    while (level.size() > 1) {
      std::vector<Node> next;
      for (size_t i = 0; i < level.size(); i += 2) {
        bool odd = i + 1 == level.size();
        next.push_back(odd ? level[i] : Combine(level[i], level[i + 1]));
      }
      level = std::move(next);
    }
    return weights_;
  }

 private:
  Node Combine(Node a, Node b) {
    const double dot = Dot(a, b).value;
    const double of_a = Factor(dot, Dot(a, a)), of_b = Factor(dot, Dot(b, b));
    for (size_t i = a.begin; i < a.end; ++i) weights_[i] *= of_a;
    for (size_t i = b.begin; i < b.end; ++i) weights_[i] *= of_b;
    return {a.begin, b.end};
  }

  struct Sum {
    double value = 0, magnitude = 0;
  };
  Sum Dot(Node a, Node b) const {
    Sum sum;
    for (size_t i = a.begin; i < a.end; ++i) {
      for (size_t j = b.begin; j < b.end; ++j) {
        const double term = weights_[i] * weights_[j] * Product(std::min(i, j), std::max(i, j));
        sum.value += term;
        sum.magnitude += std::fabs(term);
      }
    }
    return sum;
  }
  static double Factor(double dot, Sum norm) {
    if (norm.value <= kCancelled * norm.magnitude) return 1.0;
    return 1.0 - dot / (2.0 * norm.value);
  }
  double Product(size_t i, size_t j) const { return products_[i * inputs_ - i * (i + 1) / 2 + j]; }

  std::span<const double> products_;
  size_t inputs_;
  std::vector<double> weights_;
};

}  // namespace

std::vector<double> AdasumWeights(std::span<const double> dot_products, size_t inputs) {
  return Tree(dot_products, inputs).Weights();
}

}  // namespace hvd
