// Order statistics of a few measured values.
#ifndef HVD_RUNTIME_BASE_QUANTILE_H_
#define HVD_RUNTIME_BASE_QUANTILE_H_

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace hvd {

// The `at` quantile (0 to 1), always one of `values`: element floor(at * n) in ascending order, at
// most the last. Value{} if empty. O(n).
template <typename Value>
Value Quantile(std::vector<Value> values, double at) {
  if (values.empty()) return Value{};
  const auto count = static_cast<double>(values.size());
  const size_t place = std::min(values.size() - 1, static_cast<size_t>(at * count));
  const auto element = values.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), element, values.end());
  return *element;
}

// The upper median if the count is even.
template <typename Value>
Value Median(std::vector<Value> values) {
  return Quantile(std::move(values), 0.5);
}

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_QUANTILE_H_
