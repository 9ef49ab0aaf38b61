// A verdict about a script waits for what PyTorch's flight recorders say, for a limited time.
#include "launcher/stall/flight_rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr TimePoint kStart{};
constexpr Duration kSecond = std::chrono::seconds(1);

class FlightRoundsTest : public testing::Test {
 protected:
  static ScriptStall AStall(bool ends = false) {
    ScriptStall stall;
    stall.verdict.sentence = "the job hangs";
    stall.verdict.details = "  details\n";
    stall.ends = ends;
    return stall;
  }
  static FlightReply Told(uint32_t number, uint32_t rank, uint64_t last) {
    FlightEntry entry{last, 0, FlightState::kScheduled, "all_reduce", "Float [4]", "Float", 4, 4};
    return {number, {{rank, rank, "", {{"0", "default_pg", {0, 1}, last, {entry}}}}}};
  }

  std::vector<std::pair<uint32_t, uint32_t>> asked_;  // host, number
  FlightRounds rounds_{[this](uint32_t host, const AskFlight& question) {
    asked_.emplace_back(host, question.number);
  }};
};

TEST_F(FlightRoundsTest, TheVerdictWaitsForAllHosts) {
  rounds_.Begin(AStall(), {3, 5}, kStart);
  EXPECT_THAT(asked_, ElementsAre(std::pair(3, 1), std::pair(5, 1)));
  rounds_.Handle(3, Told(1, 0, 8));
  EXPECT_FALSE(rounds_.Result(2, kStart + kSecond));
  rounds_.Handle(5, Told(1, 1, 7));
  const std::optional<ScriptStall> stall = rounds_.Result(2, kStart + kSecond);
  ASSERT_TRUE(stall);
  EXPECT_EQ(stall->verdict.sentence, "the job hangs");
  EXPECT_THAT(stall->verdict.details, testing::StartsWith("  details\n  PyTorch's flight recorder: "
                                                          "collective 7 of the default group"));
  EXPECT_FALSE(rounds_.Result(2, kStart + 9 * kSecond)) << "once";
  EXPECT_EQ(rounds_.NextTick(), TimePoint::max());
}

TEST_F(FlightRoundsTest, AHostThatDoesNotAnswerHoldsItForSevenSeconds) {
  rounds_.Begin(AStall(), {0, 1}, kStart);
  rounds_.Handle(0, Told(1, 0, 8));
  EXPECT_EQ(rounds_.NextTick(), kStart + 7 * kSecond);
  EXPECT_FALSE(rounds_.Result(2, kStart + 7 * kSecond - Duration(1)));
  const std::optional<ScriptStall> stall = rounds_.Result(2, kStart + 7 * kSecond);
  ASSERT_TRUE(stall);
  EXPECT_THAT(stall->verdict.details, testing::HasSubstr("there is no dump of rank 1"));
}

TEST_F(FlightRoundsTest, WithoutRecordersTheVerdictIsAsItWas) {
  rounds_.Begin(AStall(), {0}, kStart);
  rounds_.Handle(0, {1, {}});
  const std::optional<ScriptStall> stall = rounds_.Result(2, kStart);
  ASSERT_TRUE(stall);
  EXPECT_EQ(stall->verdict.details, "  details\n");
}

TEST_F(FlightRoundsTest, AnAnswerToAnotherQuestionAndASecondOneCountForNothing) {
  rounds_.Begin(AStall(), {0, 1}, kStart);
  rounds_.Handle(0, Told(9, 0, 8));
  rounds_.Handle(0, Told(1, 0, 8));
  rounds_.Handle(0, Told(1, 0, 8));
  EXPECT_FALSE(rounds_.Result(2, kStart)) << "host 1 has not answered";
}

TEST_F(FlightRoundsTest, AnEndDoesNotWaitAndUsesWhatIsKnown) {
  rounds_.Begin(AStall(), {0}, kStart);
  rounds_.Handle(0, Told(1, 0, 8));
  ASSERT_TRUE(rounds_.Result(2, kStart));
  asked_.clear();
  rounds_.Begin(AStall(true), {0}, kStart + kSecond);
  EXPECT_THAT(asked_, IsEmpty());
  const std::optional<ScriptStall> stall = rounds_.Result(2, kStart + kSecond);
  ASSERT_TRUE(stall);
  EXPECT_TRUE(stall->ends);
  EXPECT_THAT(stall->verdict.details, testing::HasSubstr("collective 8"));
}

TEST_F(FlightRoundsTest, AnEndOvertakesAVerdictThatStillWaits) {
  rounds_.Begin(AStall(), {0}, kStart);
  ScriptStall end = AStall(true);
  end.is_new = false;
  rounds_.Begin(end, {0}, kStart + kSecond);
  const std::optional<ScriptStall> stall = rounds_.Result(2, kStart + kSecond);
  ASSERT_TRUE(stall);
  EXPECT_TRUE(stall->ends);
  EXPECT_TRUE(stall->is_new) << "the user has not read it yet";
}

TEST_F(FlightRoundsTest, WithoutAVerdictTheSameOpenCollectiveAtTwoLooksIsANotice) {
  const Duration warning = 60 * kSecond;
  TimePoint now = kStart + kSecond;
  const auto look = [&](uint64_t number) {
    rounds_.Suspect({0}, warning, now);
    FlightReply told = Told(static_cast<uint32_t>(asked_.size()), 0, number);
    told.records.push_back(Told(0, 1, number - 1).records[0]);
    told.records[1].groups[0].entries[0].state = FlightState::kCompleted;
    rounds_.Handle(0, told);
    std::optional<ScriptStall> found = rounds_.Result(2, now + kSecond);
    now += warning;
    return found;
  };
  EXPECT_FALSE(look(7)) << "it may end in a moment";
  EXPECT_FALSE(look(8)) << "it has";
  const std::optional<ScriptStall> found = look(8);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->ends);
  EXPECT_EQ(found->verdict.sentence, "a collective of PyTorch has not ended for 60 s");
  EXPECT_THAT(found->verdict.details, testing::HasSubstr("collective 8 of the default group"));
  EXPECT_THAT(found->verdict.details, testing::HasSubstr("not by rank 1"));
  EXPECT_FALSE(look(8)) << "once";
  EXPECT_FALSE(look(9));
  EXPECT_TRUE(look(9));
}

TEST_F(FlightRoundsTest, ItLooksOnceAWarningTime) {
  const TimePoint now = kStart + kSecond;
  rounds_.Suspect({0}, 60 * kSecond, now);
  rounds_.Suspect({0}, 60 * kSecond, now + 59 * kSecond);
  EXPECT_EQ(asked_.size(), 1U) << "the round is open";
  rounds_.Handle(0, {1, {}});
  EXPECT_FALSE(rounds_.Result(2, now));
  rounds_.Suspect({0}, 60 * kSecond, now + 59 * kSecond);
  EXPECT_EQ(asked_.size(), 1U);
  rounds_.Suspect({0}, 60 * kSecond, now + 60 * kSecond);
  EXPECT_EQ(asked_.size(), 2U);
}

TEST_F(FlightRoundsTest, AVerdictUsesALookThatIsUnderWay) {
  rounds_.Suspect({0}, 60 * kSecond, kStart + kSecond);
  rounds_.Begin(AStall(), {0}, kStart + 2 * kSecond);
  EXPECT_EQ(asked_.size(), 1U);
  rounds_.Handle(0, Told(1, 0, 8));
  const std::optional<ScriptStall> stall = rounds_.Result(2, kStart + 2 * kSecond);
  ASSERT_TRUE(stall);
  EXPECT_EQ(stall->verdict.sentence, "the job hangs");
}

TEST_F(FlightRoundsTest, DumpsThatPyTorchWroteBeforeAFailureExplainIt) {
  EXPECT_EQ(rounds_.LinesOfFailure(2), "");
  rounds_.Handle(0, Told(0, 0, 8));
  rounds_.Handle(0, Told(0, 1, 7));
  EXPECT_THAT(rounds_.LinesOfFailure(2), testing::HasSubstr("collective 7 of the default group"));
  rounds_.Forget();
  EXPECT_EQ(rounds_.LinesOfFailure(2), "");
}

}  // namespace
}  // namespace hvd
