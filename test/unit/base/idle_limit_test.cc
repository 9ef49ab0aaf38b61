#include "runtime/base/idle_limit.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

TEST(IdleLimit, MovesWithProgressHoweverLittle) {
  TimePoint now{};
  IdleLimit limit(seconds(30), 0, now);
  // A byte every 29 s, for a day.
  for (uint64_t moved = 1; now < TimePoint{} + hours(24); ++moved) {
    now += seconds(29);
    EXPECT_FALSE(limit.Over(moved, now));
  }
}

TEST(IdleLimit, IsOverWhenNothingMovedBetweenTwoLooks) {
  const TimePoint start{};
  IdleLimit limit(seconds(30), 7, start);
  EXPECT_EQ(limit.next_look(), start + seconds(30));
  EXPECT_FALSE(limit.Over(7, start + seconds(29))) << "not yet";
  EXPECT_FALSE(limit.Over(8, start + seconds(30))) << "something moved";
  EXPECT_EQ(limit.next_look(), start + seconds(60));
  EXPECT_FALSE(limit.Over(8, start + seconds(59)));
  EXPECT_TRUE(limit.Over(8, start + seconds(60)));
}

TEST(IdleLimit, WithoutALimitNothingIsEverOver) {
  const TimePoint late = TimePoint{} + hours(24 * 365 * 200);
  IdleLimit limit(kNoLimit, 0, late);
  EXPECT_EQ(limit.next_look(), TimePoint::max());
  EXPECT_FALSE(limit.Over(0, late + hours(24 * 365 * 50)));
}

TEST(IdleLimit, AfterDoesNotOverflow) {
  EXPECT_EQ(After(TimePoint{} + seconds(5), seconds(2)), TimePoint{} + seconds(7));
  EXPECT_EQ(After(TimePoint{} + seconds(5), kNoLimit), TimePoint::max());
  EXPECT_EQ(After(TimePoint::max() - seconds(1), seconds(2)), TimePoint::max());
}

}  // namespace
}  // namespace hvd
