// Whom the driver asks about a stall, how long it waits for the answers, and when it looks twice.
#include "launcher/stall/stall_rounds.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace hvd {
namespace {

class StallRoundsTest : public ::testing::Test {
 protected:
  StallRoundsTest() {
    plan_.hosts = {"a", "b"};
    plan_.ranks = {{0, 0, 0, 1, 0, 2}, {1, 1, 0, 1, 1, 2}};
  }
  static RankFacts Waits(uint32_t rank, uint64_t key, uint32_t awaited) {
    RankFacts facts;
    facts.rank = rank;
    facts.pid = 7;
    facts.in_world = facts.all_wait = 1;
    facts.state = "S";
    WaitFacts wait;
    wait.key = wait.id = key;
    wait.name = "x" + std::to_string(key);
    wait.waited_ms = 2000;
    wait.awaited = {awaited};
    facts.waits = {wait};
    facts.pending = {key};
    return facts;
  }
  Status Answer(uint32_t host, const RankFacts& facts) {
    return rounds_.Handle(plan_, host, {asked_.back().second.number, 4, {facts}});
  }

  Plan plan_;
  TimePoint now_{std::chrono::hours(1)};
  std::vector<std::pair<uint32_t, ExamineRanks>> asked_;
  StallRounds rounds_{
      [this](uint32_t host, const ExamineRanks& question) { asked_.emplace_back(host, question); }};
};

TEST_F(StallRoundsTest, AskEveryHostOnce) {
  rounds_.Begin(plan_, {4, 0, {1}}, now_);
  rounds_.Begin(plan_, {4, 1, {0}}, now_);
  ASSERT_EQ(asked_.size(), 2U);
  EXPECT_EQ(asked_[0].first, 0U);
  EXPECT_EQ(asked_[1].second.stacks, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(asked_[1].second.generation, 4U);
}

TEST_F(StallRoundsTest, ARankThatMayGoOnIsReportedAfterOneLook) {
  rounds_.Begin(plan_, {4, 0, {1}}, now_);
  RankFacts busy;
  busy.rank = 1;
  busy.in_world = 1;
  busy.state = "R";
  ASSERT_TRUE(Answer(0, Waits(0, 1, 1)).ok());
  EXPECT_FALSE(rounds_.Result(plan_, now_)) << "host b has not answered";
  ASSERT_TRUE(Answer(1, busy).ok());
  const std::optional<StallExplained> stall = rounds_.Result(plan_, now_);
  ASSERT_TRUE(stall);
  EXPECT_EQ(stall->generation, 4U);
  EXPECT_FALSE(stall->verdict.never_ends);
  ASSERT_EQ(stall->verdict.missing.size(), 1U);
  EXPECT_EQ(stall->verdict.missing[0].found, RankClass::kBusy);
  EXPECT_EQ(rounds_.NextTick(), TimePoint::max());
}

TEST_F(StallRoundsTest, AHostThatDoesNotAnswerIsUnreachable) {
  rounds_.Begin(plan_, {4, 0, {1}}, now_);
  ASSERT_TRUE(Answer(0, Waits(0, 1, 1)).ok());
  const TimePoint late = rounds_.NextTick();
  EXPECT_GT(late, now_);
  const std::optional<StallExplained> stall = rounds_.Result(plan_, late);
  ASSERT_TRUE(stall);
  EXPECT_EQ(stall->verdict.missing[0].found, RankClass::kUnreachable);
}

TEST_F(StallRoundsTest, ADeadlockIsLookedAtTwice) {
  rounds_.Begin(plan_, {4, 0, {1}}, now_);
  for (int look = 0; look < 2; ++look) {
    ASSERT_TRUE(Answer(0, Waits(0, 1, 1)).ok());
    ASSERT_TRUE(Answer(1, Waits(1, 2, 0)).ok());
    const std::optional<StallExplained> stall = rounds_.Result(plan_, now_);
    ASSERT_EQ(stall.has_value(), look == 1);
    if (stall) {
      EXPECT_TRUE(stall->verdict.never_ends);
    }
  }
  EXPECT_EQ(asked_.size(), 4U);
}

TEST_F(StallRoundsTest, AHostSpeaksOfItsOwnRanks) {
  rounds_.Begin(plan_, {4, 0, {1}}, now_);
  EXPECT_FALSE(Answer(0, Waits(1, 1, 0)).ok());
  EXPECT_FALSE(Answer(0, Waits(2, 1, 0)).ok());
}

}  // namespace
}  // namespace hvd
