#include "runtime/core/stall_limits.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

using std::chrono::seconds;

// The findings of each look at the operation, by the second of the look.
std::vector<Stall> Looks(const StallLimits& limits, std::initializer_list<int> at) {
  Operation op;
  std::vector<Stall> found;
  for (int second : at) found.push_back(limits.Check(&op, TimePoint(seconds(1000 + second))));
  return found;
}

TEST(StallLimits, WarnOncePerInterval) {
  using enum Stall;
  EXPECT_EQ(Looks({seconds(10), Duration(0)}, {0, 9, 10, 11, 19, 20}),
            (std::vector{kNone, kNone, kWarn, kNone, kNone, kWarn}));
}

TEST(StallLimits, CountAShutdownFromTheBeginningOfTheWait) {
  using enum Stall;
  EXPECT_EQ(Looks({seconds(10), seconds(25)}, {0, 10, 20, 24, 25}),
            (std::vector{kNone, kWarn, kWarn, kNone, kShutdown}));
  EXPECT_EQ(Looks({Duration(0), seconds(5)}, {0, 4, 5}), (std::vector{kNone, kNone, kShutdown}));
}

TEST(StallLimits, OfZeroNeverApply) {
  using enum Stall;
  EXPECT_EQ(Looks({}, {0, 1000000}), (std::vector{kNone, kNone}));
}

}  // namespace
}  // namespace hvd
