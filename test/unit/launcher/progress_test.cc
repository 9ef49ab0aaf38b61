#include "launcher/progress.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

constexpr TimePoint kStart{};

TEST(Progress, AQuickStartShowsNothing) {
  Progress progress(2, kStart);
  EXPECT_EQ(progress.Show(kStart + Progress::kQuiet / 2), "");
  EXPECT_EQ(progress.Wipe(), "");
  EXPECT_FALSE(progress.due());
  EXPECT_EQ(progress.Show(kStart + Progress::kQuiet * 2), "");
}

TEST(Progress, ASlowOneCountsAndIsWiped) {
  Progress progress(2, kStart);
  ASSERT_EQ(progress.due(), kStart + Progress::kQuiet);
  progress.WorkerStarted();
  progress.WorkerStarted();
  progress.RankJoined();
  TimePoint now = *progress.due();
  EXPECT_EQ(progress.Show(now), "\r\x1b[Khvdrun: starting: workers started 2/2, in init 1/2");
  EXPECT_FALSE(progress.due()) << "nothing new";
  progress.RankJoined();
  EXPECT_EQ(progress.due(), now + Progress::kBetween);
  EXPECT_EQ(progress.Show(now + Progress::kBetween), "\r\x1b[K");
  EXPECT_FALSE(progress.due());
  EXPECT_EQ(progress.Wipe(), "");
}

}  // namespace
}  // namespace hvd
