#include "runtime/core/request/process_set.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

using Sets = std::vector<std::vector<uint32_t>>;

TEST(SetsWithin, AWorldHasOfEachSetTheRanksThatExist) {
  const Sets given = {{0, 2, 4}, {1, 3}, {0, 1}, {5}, {3, 2, 1, 0}};
  EXPECT_EQ(SetsWithin(given, 6), (Sets{{0, 2, 4}, {1, 3}, {0, 1}, {5}, {0, 1, 2, 3}}));
  EXPECT_EQ(SetsWithin(given, 4), (Sets{{0, 2}, {1, 3}, {0, 1}}))
      << "{5} is gone, one is the world";
  EXPECT_EQ(SetsWithin(given, 3), (Sets{{0, 2}, {1}, {0, 1}}));
  EXPECT_EQ(SetsWithin(given, 2), (Sets{{0}, {1}})) << "{0, 1} is the world";
  EXPECT_EQ(SetsWithin(given, 1), Sets{});
}

TEST(SetsWithin, SetsThatHaveBecomeEqualAreOne) {
  EXPECT_EQ(SetsWithin({{0, 1, 3}, {0, 1, 4}}, 5), (Sets{{0, 1, 3}, {0, 1, 4}}));
  EXPECT_EQ(SetsWithin({{0, 1, 3}, {0, 1, 4}}, 3), Sets({{0, 1}}));
}

}  // namespace
}  // namespace hvd
