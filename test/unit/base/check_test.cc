#include "runtime/base/check.h"

#include <gtest/gtest.h>

#include <string>

namespace hvd {
namespace {

TEST(Check, ACheckThatHoldsDoesNothing) {
  int evaluated = 0;
  HVD_CHECK(1 + 1 == 2);
  HVD_CHECK(true, ++evaluated);
  EXPECT_EQ(evaluated, 0) << "values are computed for a failure only";
}

TEST(CheckDeathTest, SaysFileLineConditionAndValues) {
  const uint64_t offset = 70, size = 64;
  EXPECT_DEATH(HVD_CHECK(offset <= size, offset, size),
               "check_test.cc:[0-9]+, because its memory would be corrupted: offset <= size does "
               "not hold \\(offset, size = 70, 64\\)");
  EXPECT_DEATH(HVD_CHECK(offset == 0), "offset == 0 does not hold; this is a defect of hvd");
}

TEST(CheckDeathTest, AConditionWithoutAnEndIsCut) {
  EXPECT_DEATH(CheckFailed("a.cc", 1, std::string(5000, 'x').c_str(), "", {}), "a.cc:1, .*xxx");
}

}  // namespace
}  // namespace hvd
