#include "launcher/driver/run_watch.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(RunWatch, TellsHowLongNothingWasRun) {
  RunWatch watch;
  TimePoint now = TimePoint() + seconds(100);
  EXPECT_EQ(watch.Look(now), Duration{}) << "the first look";
  EXPECT_EQ(watch.Look(now += seconds(1)), Duration{});
  EXPECT_EQ(watch.Look(now += milliseconds(2900)), Duration{}) << "a busy machine";
  EXPECT_EQ(watch.Look(now += seconds(61)), seconds(60));
  EXPECT_EQ(watch.Look(now), Duration{}) << "once";
}

}  // namespace
}  // namespace hvd
