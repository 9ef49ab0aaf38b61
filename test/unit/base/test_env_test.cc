// The same test in a build that knows the variables of tests and in one that does not.
#include "runtime/base/test_env.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace hvd {
namespace {

#ifdef HVD_TESTING_FAULTS
constexpr bool kKnown = true;
#else
constexpr bool kKnown = false;
#endif

class Variable {
 public:
  explicit Variable(const char* value) { ::setenv("HVD_TEST_X", value, 1); }
  ~Variable() { ::unsetenv("HVD_TEST_X"); }
};

TEST(TestEnv, IsKnownToABuildForTestsOnly) {
  EXPECT_FALSE(GetTestEnv("HVD_TEST_X"));
  Variable variable("some");
  EXPECT_EQ(GetTestEnv("HVD_TEST_X").has_value(), kKnown);
}

TEST(TestEnv, NumbersAboveZeroCount) {
  EXPECT_EQ(TestNumber("HVD_TEST_X", 7), 7);
  for (const char* text : {"", "x", "0", "-3"}) {
    Variable variable(text);
    EXPECT_EQ(TestNumber("HVD_TEST_X", 7), 7) << text;
  }
  Variable variable("30");
  EXPECT_EQ(TestNumber("HVD_TEST_X", 7), kKnown ? 30 : 7);
}

}  // namespace
}  // namespace hvd
