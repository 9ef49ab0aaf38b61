#include "runtime/base/kernel_features.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

TEST(ListHolds, WholeWordsOnly) {
  EXPECT_TRUE(ListHolds("pidfd", "pidfd"));
  EXPECT_TRUE(ListHolds("cgroup,pidfd,memfd", "memfd"));
  EXPECT_FALSE(ListHolds("", "pidfd"));
  EXPECT_FALSE(ListHolds("pidfd2,apidfd,,", "pidfd"));
}

}  // namespace
}  // namespace hvd
