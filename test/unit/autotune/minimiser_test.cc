#include "autotune/minimiser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hvd {
namespace {

TEST(Minimise, FindsTheGroundOfACurvedValley) {
  const SmoothFunction valley = [](const std::vector<double>& x, std::vector<double>* gradient) {
    const double across = x[1] - x[0] * x[0];
    (*gradient)[0] = -400 * x[0] * across - 2 * (1 - x[0]);
    (*gradient)[1] = 200 * across;
    return 100 * across * across + (1 - x[0]) * (1 - x[0]);
  };
  const Minimum minimum = Minimise(valley, {-1.2, 1}, 200);
  EXPECT_NEAR(minimum.x[0], 1, 1e-3);
  EXPECT_NEAR(minimum.x[1], 1, 1e-3);
}

TEST(Minimise, StaysAwayFromWhereThereIsNothing) {
  const SmoothFunction walled = [](const std::vector<double>& x, std::vector<double>* gradient) {
    (*gradient)[0] = -1;
    return x[0] > 2 ? std::numeric_limits<double>::infinity() : -x[0];
  };
  const Minimum minimum = Minimise(walled, {0}, 50);
  EXPECT_LE(minimum.x[0], 2);
  EXPECT_GT(minimum.x[0], 1);
}

TEST(Minimise, AFlatFunctionEndsAtTheStart) {
  const SmoothFunction flat = [](const std::vector<double>&, std::vector<double>* gradient) {
    (*gradient)[0] = 0;
    return 3.0;
  };
  EXPECT_EQ(Minimise(flat, {0.5}, 50).x[0], 0.5);
}

}  // namespace
}  // namespace hvd
