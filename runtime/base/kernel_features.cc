#include "runtime/base/kernel_features.h"

#include <algorithm>
#include <string>

#include "runtime/base/test_env.h"

namespace hvd {

bool ListHolds(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == word) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

bool Without(std::string_view means) {
  static const std::string without = GetTestEnv("HVD_TEST_WITHOUT").value_or("");
  return ListHolds(without, means);
}

}  // namespace hvd
