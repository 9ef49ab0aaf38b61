#include "runtime/base/quantile.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace hvd {
namespace {

TEST(Quantile, IsAlwaysOneOfTheValues) {
  EXPECT_EQ(Median<int>({3, 1, 2}), 2);
  EXPECT_EQ(Median<int>({4, 1, 3, 2}), 3);  // the upper one of two
  EXPECT_EQ(Median<double>({0.5}), 0.5);
}

TEST(Quantile, OfNoValuesIsZero) {
  EXPECT_EQ(Median<int64_t>({}), 0);
  EXPECT_EQ(Quantile<double>({}, 0.9), 0);
}

TEST(Quantile, FromTheLeastToTheMost) {
  std::vector<int> values;
  for (int i = 10; i > 0; --i) values.push_back(i);
  EXPECT_EQ(Quantile(values, 0), 1);
  EXPECT_EQ(Quantile(values, 0.25), 3);
  EXPECT_EQ(Quantile(values, 0.9), 10);
  EXPECT_EQ(Quantile(values, 1), 10);
}

}  // namespace
}  // namespace hvd
