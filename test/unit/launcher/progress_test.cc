#include "launcher/output/progress.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

constexpr TimePoint kBegun{};

TEST(Progress, AQuickStartShowsNothing) {
  Progress progress(2, kBegun);
  EXPECT_EQ(progress.Show(kBegun + Progress::kQuiet / 2), "");
  EXPECT_EQ(progress.Wipe(), "");
  EXPECT_FALSE(progress.due());
  EXPECT_EQ(progress.Show(kBegun + Progress::kQuiet * 2), "");
}

TEST(Progress, ASlowOneCountsAndIsWiped) {
  Progress progress(2, kBegun);
  ASSERT_EQ(progress.due(), kBegun + Progress::kQuiet);
  progress.WorkerStarted();
  progress.WorkerStarted();
  progress.RankJoined(1);
  progress.RankJoined(1);
  TimePoint now = *progress.due();
  EXPECT_EQ(progress.Show(now),
            "\r\x1b[Khvdrun: starting: workers started 2/2, in init 1/2, not yet: rank 0");
  EXPECT_FALSE(progress.due()) << "nothing new";
  progress.RankJoined(0);
  EXPECT_EQ(progress.due(), now + Progress::kBetween);
  EXPECT_EQ(progress.Show(now + Progress::kBetween), "\r\x1b[K");
  EXPECT_FALSE(progress.due());
  EXPECT_EQ(progress.Wipe(), "");
}

TEST(Progress, HostsThatGetReadyComeFirst) {
  Progress progress(2, kBegun, /*hosts=*/true);
  EXPECT_EQ(progress.due(), kBegun + Progress::kQuietHosts);
  EXPECT_EQ(progress.Show(kBegun + Progress::kQuiet, "8 connecting"), "");
  TimePoint now = *progress.due();
  EXPECT_EQ(progress.Show(now, "2 ready, 6 connecting"),
            "\r\x1b[Khvdrun: hosts: 2 ready, 6 connecting");
  EXPECT_FALSE(progress.due()) << "nothing new";
  progress.HostsChanged();
  EXPECT_EQ(progress.due(), now + Progress::kBetween);
  progress.HostsReady();
  EXPECT_EQ(progress.Show(now + Progress::kBetween),
            "\r\x1b[Khvdrun: starting: workers started 0/2, in init 0/2");
}

TEST(Progress, ManyMissingRanksStayOneLine) {
  Progress progress(1000, kBegun);
  progress.RankJoined(999);
  EXPECT_TRUE(progress.Show(kBegun + Progress::kQuiet).ends_with("not yet: ranks 0-998"));
  for (uint32_t rank = 0; rank < 1000; rank += 2) progress.RankJoined(rank);
  std::string line = progress.Show(kBegun + Progress::kQuiet * 2);
  EXPECT_TRUE(line.ends_with(",...")) << line;
  EXPECT_LT(line.size(), 130U);
}

}  // namespace
}  // namespace hvd
