#include "autotune/search_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = TuneAxis::Kind;

SearchSpace Space() {
  return *SearchSpace::Make(
      {{.name = "bytes", .low = 1024, .high = 1 << 20, .initial = 1 << 15, .whole = true},
       {.name = "fixed", .low = 1, .high = 9, .initial = 4, .pinned = true},
       {.name = "pieces", .kind = Kind::kInteger, .low = 1, .high = 5, .initial = 3},
       {.name = "way", .kind = Kind::kCategory, .low = 0, .high = 2, .initial = 2}});
}

TEST(SearchSpace, CoordinatesLeaveOutWhatIsPinned) {
  EXPECT_EQ(Space().dimensions(), 3U);
  EXPECT_THAT(Space().ToUnit(Space().initial()), ElementsAre(0.5, 0.5, 2));
  EXPECT_THAT(Space().FromUnit({0.5, 0.5, 2}), ElementsAre(1 << 15, 4, 3, 2));
}

TEST(SearchSpace, WhatIsOutsideMovesToTheBorder) {
  EXPECT_THAT(Space().FromUnit({-1, 2, 7}), ElementsAre(1024, 4, 5, 2));
}

TEST(SearchSpace, RandomPointsHaveEveryCategoryAndStayInside) {
  std::mt19937_64 random(1);
  bool seen[3] = {};
  for (int i = 0; i < 200; ++i) {
    const TunePoint point = Space().FromUnit(Space().RandomUnit(random));
    EXPECT_GE(point[0], 1024);
    EXPECT_LE(point[0], 1 << 20);
    EXPECT_EQ(point[1], 4);
    seen[static_cast<size_t>(point[3])] = true;
  }
  EXPECT_TRUE(seen[0] && seen[1] && seen[2]);
}

TEST(SearchSpace, AxesThatMakeNoSenseAreRefused) {
  const auto refused = [](TuneAxis axis) {
    axis.name = "x";
    return SearchSpace::Make({axis}).status().message();
  };
  EXPECT_THAT(refused({.low = 0, .high = 4, .initial = 1}), HasSubstr("'x'"));
  EXPECT_THAT(refused({.low = 4, .high = 2, .initial = 3}), HasSubstr("no range"));
  EXPECT_THAT(refused({.low = 1, .high = 2, .initial = 3}), HasSubstr("initial value"));
  EXPECT_THAT(refused({.low = 1, .high = std::numeric_limits<double>::infinity(), .initial = 3}),
              HasSubstr("no range"));
  EXPECT_THAT(refused({.kind = Kind::kCategory, .low = 1, .high = 2, .initial = 1}),
              HasSubstr("from 0"));
  // A value that the user fixed may be anything.
  EXPECT_EQ(refused({.low = 1, .high = 2, .initial = 3, .pinned = true}), "");
}

}  // namespace
}  // namespace hvd
