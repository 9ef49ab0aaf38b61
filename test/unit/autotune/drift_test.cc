#include "autotune/drift.h"

#include <gtest/gtest.h>

#include <random>

#include "autotune/search_space.h"

namespace hvd {
namespace {

// After how many values of this level the alarm is given; 0: never.
int AlarmAfter(double level, int most) {
  DriftWatch watch(0.05);
  std::mt19937_64 random(3);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(watch.Add(0.05 * NormalRandom(random)));
  for (int i = 1; i <= most; ++i) {
    if (watch.Add(level + 0.05 * NormalRandom(random))) return i;
  }
  return 0;
}

TEST(DriftWatch, NoiseIsNoDrift) { EXPECT_EQ(AlarmAfter(0, 2000), 0); }

TEST(DriftWatch, AChangeOfTheLevelIsNoticedInBothDirections) {
  for (const double level : {0.3, -0.3}) {
    const int after = AlarmAfter(level, 100);
    EXPECT_GT(after, 0) << level;
    EXPECT_LE(after, 20) << level;
  }
}

TEST(DriftWatch, OneValueFarOffIsNoDrift) {
  DriftWatch watch(0.05);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(watch.Add(0));
  EXPECT_FALSE(watch.Add(-100));
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(watch.Add(0));
}

}  // namespace
}  // namespace hvd
