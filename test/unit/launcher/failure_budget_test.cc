#include "launcher/job/policy/failure_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using namespace std::chrono_literals;

TEST(FailureLimit, ReadsANumberAndATime) {
  struct Case {
    std::string_view text;
    FailureLimit limit;
  };
  const Case cases[] = {
      {"0", {0, {}}},        {"10", {10, {}}},
      {"10/90", {10, 90s}},  {"10/90s", {10, 90s}},
      {"5/30m", {5, 30min}}, {"10/1h", {10, 1h}},
      {"1/2d", {1, 48h}},    {"1000000", {1'000'000, {}}},
  };
  for (const Case& c : cases) {
    const Result<FailureLimit> limit = ParseFailureLimit(c.text);
    ASSERT_TRUE(limit.ok()) << limit.status().message();
    EXPECT_EQ(*limit, c.limit) << c.text;
  }
}

TEST(FailureLimit, RefusesOtherTextsInOneSentence) {
  for (std::string_view text :
       {"", "-1", "x", "1.5", "10/", "/1h", "10/h", "10/0s", "10/1w", "10 /1h", "10/1h/2", "10/-1h",
        "1000001", "99999999999999999999", "10/1hh"}) {
    const Result<FailureLimit> limit = ParseFailureLimit(text);
    ASSERT_FALSE(limit.ok()) << text;
    EXPECT_EQ(limit.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(limit.status().message(), testing::StartsWith("--max-failures '"));
    EXPECT_THAT(limit.status().message(), testing::HasSubstr("try --max-failures 10"));
  }
}

TEST(FailureBudget, EndsWithOneFailureTooMany) {
  FailureBudget budget({.most = 2});
  ManualClock clock;
  EXPECT_EQ(budget.Text(clock.Now()), "0 of 2 failures");
  EXPECT_TRUE(budget.Spend(clock.Now()));
  clock.Advance(1000h);
  EXPECT_TRUE(budget.Spend(clock.Now()));
  EXPECT_EQ(budget.Text(clock.Now()), "2 of 2 failures");
  EXPECT_FALSE(budget.Spend(clock.Now()));
  EXPECT_FALSE(budget.Spend(clock.Now()));
}

TEST(FailureBudget, AJobOfAFixedSizeHasNone) {
  FailureBudget budget(FailureLimit{});
  EXPECT_FALSE(budget.Spend(TimePoint{}));
}

TEST(FailureBudget, ForgetsFailuresThatAreOlderThanItsWindow) {
  FailureBudget budget({.most = 2, .window = 1h});
  ManualClock clock;
  EXPECT_TRUE(budget.Spend(clock.Now()));
  clock.Advance(30min);
  EXPECT_TRUE(budget.Spend(clock.Now()));
  EXPECT_EQ(budget.Text(clock.Now()), "2 of 2 failures within 1 h");
  clock.Advance(30min);  // the first is an hour old
  EXPECT_EQ(budget.Text(clock.Now()), "1 of 2 failures within 1 h");
  EXPECT_TRUE(budget.Spend(clock.Now()));
  clock.Advance(1min);
  EXPECT_FALSE(budget.Spend(clock.Now()));
}

// A long job: a thousand failures, never three within the hour.
TEST(FailureBudget, NeverEndsAJobThatFailsSeldom) {
  FailureBudget budget({.most = 2, .window = 1h});
  ManualClock clock;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(budget.Spend(clock.Now())) << i;
    clock.Advance(31min);
  }
}

TEST(FailureBudget, SaysItsWindowInTheLargestUnit) {
  const std::pair<Duration, const char*> cases[] = {
      {90s, "0 of 1 failure within 90 s"},
      {30min, "0 of 1 failure within 30 min"},
      {2h, "0 of 1 failure within 2 h"},
      {48h, "0 of 1 failure within 2 d"},
  };
  for (const auto& [window, text] : cases) {
    EXPECT_EQ(FailureBudget({.most = 1, .window = window}).Text(TimePoint{}), text);
  }
}

}  // namespace
}  // namespace hvd
