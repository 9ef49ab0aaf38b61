#include "autotune/gaussian_process.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "autotune/search_space.h"

namespace hvd {
namespace {

Observation At(std::vector<double> x, std::initializer_list<double> values, double offset = 0) {
  Observation seen{std::move(x), offset};
  for (const double value : values) seen.Add(value);
  return seen;
}

TEST(Observation, KeepsMeanAndSquares) {
  const Observation seen = At({0}, {1, 2, 3, 6});
  EXPECT_DOUBLE_EQ(seen.count, 4);
  EXPECT_DOUBLE_EQ(seen.mean, 3);
  EXPECT_DOUBLE_EQ(seen.squares, 14);
}

TEST(GaussianProcess, FollowsWhatWasMeasuredAndIsUnsureElsewhere) {
  GaussianProcess process({false});
  std::mt19937_64 random(1);
  std::vector<Observation> observed;
  for (const double x : {0.0, 0.1, 0.2, 0.3, 0.4})
    observed.push_back(At({x}, {0.2 * x, 0.2 * x + 0.001}));
  process.Fit(observed, random);
  EXPECT_NEAR(process.At({0.25}, 0).mean, 0.05, 0.01);
  EXPECT_LT(process.At({0.25}, 0).deviation, 0.01);
  EXPECT_GT(process.At({1.0}, 0).deviation, 3 * process.At({0.25}, 0).deviation);
}

TEST(GaussianProcess, LearnsTheNoiseFromRepeatedMeasurements) {
  for (const double noise : {0.01, 0.1}) {
    GaussianProcess process({false});
    std::mt19937_64 random(5);
    std::vector<Observation> observed;
    for (const double x : {0.0, 0.5, 1.0}) {
      Observation seen{{x}};
      for (int i = 0; i < 8; ++i) seen.Add(noise * NormalRandom(random));
      observed.push_back(seen);
    }
    process.Fit(observed, random);
    EXPECT_GT(process.noise(), noise / 1.6);
    EXPECT_LT(process.noise(), noise * 1.6);
  }
}

TEST(GaussianProcess, LearnsWhichDimensionMatters) {
  GaussianProcess process({false, false});
  std::mt19937_64 random(2);
  std::vector<Observation> observed;
  for (int i = 0; i < 20; ++i) {
    const std::vector<double> x{UnitRandom(random), UnitRandom(random)};
    observed.push_back(At(x, {0.3 * std::sin(6 * x[0]) + 0.002 * NormalRandom(random)}));
  }
  process.Fit(observed, random);
  EXPECT_NEAR(process.At({0.3, 0.1}, 0).mean, process.At({0.3, 0.9}, 0).mean, 0.03);
}

// Expected differences that were twice as large as the measured ones are so elsewhere.
TEST(GaussianProcess, LearnsHowFarExpectationsAreToBeBelieved) {
  GaussianProcess process({false});
  std::mt19937_64 random(3);
  std::vector<Observation> observed;
  for (const double x : {0.0, 0.1, 0.2, 0.3}) {
    const double expected = 2 * x;
    observed.push_back(At({x}, {expected / 2, expected / 2 + 0.001}, expected));
  }
  process.Fit(observed, random);
  const double far = process.At({1.0}, -0.6).mean;
  EXPECT_GT(far, -0.6 + 0.1);
  EXPECT_LT(far, 0.0);
}

TEST(GaussianProcess, CategoriesAreEquallyFarApart) {
  GaussianProcess process({true});
  std::mt19937_64 random(2);
  process.Fit({At({0}, {0.1, 0.11}), At({2}, {-0.1, -0.11})}, random);
  EXPECT_NEAR(process.At({1}, 0).mean, process.At({3}, 0).mean, 1e-9);
}

TEST(GaussianProcess, APredictionIsCorrectedAndNotReplaced) {
  GaussianProcess process({false});
  std::mt19937_64 random(2);
  // Off by the same factor everywhere.
  process.Fit({At({0.0}, {1.0, 1.01}, 0.5), At({0.5}, {1.2, 1.21}, 0.7)}, random);
  EXPECT_NEAR(process.At({0.25}, 0.9).mean, 1.4, 0.05);
}

TEST(GaussianProcess, ImprovementIsExpectedWhereNothingIsKnownAndNotWhereItIsBad) {
  GaussianProcess process({false});
  std::mt19937_64 random(2);
  std::vector<Observation> observed;
  for (const double x : {0.0, 0.1, 0.2, 0.3}) observed.push_back(At({x}, {x, x + 0.002}));
  process.Fit(observed, random);
  EXPECT_GT(process.Improvement({0.6}, 0), process.Improvement({0.05}, 0));
  EXPECT_LT(process.Improvement({0.3}, 0), 0.01);
}

TEST(GaussianProcess, AllTheSameIsNoTrouble) {
  GaussianProcess process({false});
  std::mt19937_64 random(2);
  process.Fit({At({0.5}, {1, 1, 1, 1})}, random);
  EXPECT_NEAR(process.At({0.5}, 0).mean, 1, 1e-6);
  EXPECT_TRUE(std::isfinite(process.Improvement({0.9}, 0)));
}

}  // namespace
}  // namespace hvd
