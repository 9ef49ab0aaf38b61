#include "launcher/output/progress_throttle.h"

#include <gtest/gtest.h>

#include <string>

namespace hvd {
namespace {

using std::chrono::milliseconds;

constexpr TimePoint kFirstShown{std::chrono::hours(1)};

class ProgressThrottleTest : public testing::Test {
 protected:
  std::string Take() { return std::exchange(passed_, {}); }
  std::string Add(uint32_t rank, std::string_view bytes, TimePoint now) {
    throttle_.Add(rank, bytes, now);
    return Take();
  }
  // So many updates of one millisecond each; how many were shown.
  int Updates(uint32_t rank, int count, TimePoint& now) {
    int shown = 0;
    for (int i = 0; i < count; ++i, now += milliseconds(1)) {
      shown += !Add(rank, std::to_string(i) + "\r", now).empty();
      if (throttle_.deadline() && *throttle_.deadline() <= now) {
        throttle_.Due(now);
        shown += !Take().empty();
      }
    }
    return shown;
  }

  std::string passed_;
  ProgressThrottle throttle_{3, 10, false,
                             [this](uint32_t, std::string_view bytes) { passed_ += bytes; }};
};

TEST_F(ProgressThrottleTest, LinesPassAsTheyAre) {
  EXPECT_EQ(Add(0, "a\nb\r\nopen", kFirstShown), "a\nb\r\nopen");
  EXPECT_EQ(Add(0, " line\n", kFirstShown), " line\n");
  EXPECT_FALSE(throttle_.deadline());
}

TEST_F(ProgressThrottleTest, AFewUpdatesPassAtOnce) {
  EXPECT_EQ(Add(0, "1%\r2%\r3%\rdone\n", kFirstShown), "1%\r2%\r3%\rdone\n");
}

TEST_F(ProgressThrottleTest, ManyAreBoundedForEachRank) {
  TimePoint now = kFirstShown;
  int shown = Updates(0, 5000, now);  // 5 s
  EXPECT_GE(shown, 50);
  EXPECT_LE(shown, 62);
  TimePoint other = kFirstShown;
  EXPECT_EQ(Updates(1, 10, other), 10) << "another rank has its own";
}

TEST_F(ProgressThrottleTest, TheLastIsShownInTime) {
  TimePoint now = kFirstShown;
  Updates(0, 200, now);
  Add(0, "99%\r", now);
  EXPECT_EQ(Add(0, "100%\r", now), "");
  ASSERT_TRUE(throttle_.deadline());
  EXPECT_LE(*throttle_.deadline(), now + milliseconds(100));
  throttle_.Due(*throttle_.deadline());
  EXPECT_EQ(Take(), "100%\r");
  EXPECT_FALSE(throttle_.deadline());
}

TEST_F(ProgressThrottleTest, TheLastIsShownBeforeALineAndAtTheEnd) {
  TimePoint now = kFirstShown;
  Updates(0, 200, now);
  Add(0, "97%\r", now);  // a place may have been free for this one
  EXPECT_EQ(Add(0, "98%\r100%\r", now), "");
  EXPECT_EQ(Add(0, "loss 1\n", now), "100%\rloss 1\n");
  EXPECT_EQ(Add(0, "50%\r", now), "");
  throttle_.Flush();
  EXPECT_EQ(Take(), "50%\r");
}

TEST_F(ProgressThrottleTest, WhatEndsAnOpenLineIsKept) {
  TimePoint now = kFirstShown;
  Updates(0, 200, now);
  EXPECT_EQ(Add(0, "a long beginning", now), "199\ra long beginning");
  EXPECT_EQ(Add(0, " and end\rnext\r", now), " and end\r");
}

TEST(ProgressThrottle, ARateOfZeroShowsAll) {
  std::string passed;
  ProgressThrottle all(1, 0, false, [&](uint32_t, std::string_view bytes) { passed += bytes; });
  std::string wrote;
  for (int i = 0; i < 1000; ++i) wrote += std::to_string(i) + "\r";
  all.Add(0, wrote, kFirstShown);
  EXPECT_EQ(passed, wrote);
  EXPECT_FALSE(all.deadline());
}

}  // namespace
}  // namespace hvd
