// Adasum by its definition, level by level, with every vector in between.
#ifndef HVD_TEST_FAKES_ADASUM_DEFINITION_H_
#define HVD_TEST_FAKES_ADASUM_DEFINITION_H_

#include <numeric>
#include <vector>

namespace hvd::test {

inline std::vector<double> AdasumOf(std::vector<std::vector<double>> level) {
  auto dot = [](const std::vector<double>& a, const std::vector<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  while (level.size() > 1) {
    std::vector<std::vector<double>> next;
    for (size_t k = 0; k < level.size(); k += 2) {
      if (k + 1 == level.size()) {
        next.push_back(level[k]);
        continue;
      }
      const auto &a = level[k], &b = level[k + 1];
      const double ab = dot(a, b), aa = dot(a, a), bb = dot(b, b);
      const double of_a = aa == 0 ? 1 : 1 - ab / (2 * aa), of_b = bb == 0 ? 1 : 1 - ab / (2 * bb);
      std::vector<double> sum(a.size());
      for (size_t i = 0; i < a.size(); ++i) sum[i] = of_a * a[i] + of_b * b[i];
      next.push_back(sum);
    }
    level = next;
  }
  return level[0];
}

}  // namespace hvd::test

#endif  // HVD_TEST_FAKES_ADASUM_DEFINITION_H_
