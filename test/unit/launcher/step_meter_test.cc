#include "launcher/tuning/step_meter.h"

#include <gtest/gtest.h>

#include <vector>

namespace hvd {
namespace {

// A rank that trains: each operation takes a millisecond.
struct Training {
  StepMeter meter;
  std::vector<TrainingStep> steps;
  uint64_t now = 1;

  void Do(uint32_t id, uint64_t bytes, uint64_t ms = 1) {
    now += ms * 1'000'000;
    const TraceRecord record{.stamp = now, .kind = TraceKind::kDone, .id = id, .bytes = bytes};
    meter.Add({&record, 1}, &steps);
  }
  void Step() {
    Do(1, 10);
    Do(2, 1000);
    Do(3, 30);
  }
};

TEST(StepMeter, AStepIsARoundOfTheNamesThatComeBack) {
  Training training;
  for (int i = 0; i < 10; ++i) training.Step();
  ASSERT_GE(training.steps.size(), 6U);
  for (const TrainingStep& step : training.steps) {
    EXPECT_EQ(step.duration_ns, 3'000'000);
    EXPECT_EQ(step.bytes, 1040U);
  }
}

TEST(StepMeter, ASmallNameThatComesMoreOftenMakesNoSteps) {
  Training training;
  for (int i = 0; i < 10; ++i) {
    training.Do(9, 4);
    training.Step();
    training.Do(9, 4);
  }
  ASSERT_GE(training.steps.size(), 5U);
  for (const TrainingStep& step : training.steps) EXPECT_EQ(step.bytes, 1048U);
}

TEST(StepMeter, NamesThatNeverComeBackMakeNoSteps) {
  Training training;
  for (uint32_t id = 1; id < 300'000; ++id) training.Do(id, 8);
  EXPECT_TRUE(training.steps.empty());
}

TEST(StepMeter, FollowsAScriptThatGoesOnWithOtherNames) {
  Training training;
  for (int i = 0; i < 10; ++i) training.Step();
  const size_t before = training.steps.size();
  for (int i = 0; i < 400; ++i) {
    training.Do(21, 500);
    training.Do(22, 5);
  }
  ASSERT_GT(training.steps.size(), before + 200);
  EXPECT_EQ(training.steps.back().bytes, 505U);
}

TEST(StepMeter, TheSignatureIsOfTheSizesOfAStepAndNotOfTheirOrder) {
  Training training, other_order, other_size;
  EXPECT_EQ(training.meter.signature(), 0U);
  for (int i = 0; i < 6; ++i) {
    training.Step();
    other_order.Do(7, 1000);
    other_order.Do(8, 30);
    other_order.Do(9, 10);
    other_size.Do(1, 1001);
    other_size.Do(2, 30);
    other_size.Do(3, 10);
  }
  EXPECT_NE(training.meter.signature(), 0U);
  EXPECT_EQ(training.meter.signature(), other_order.meter.signature());
  EXPECT_NE(training.meter.signature(), other_size.meter.signature());
}

TEST(StepMeter, AnOddStepDoesNotChangeTheSignature) {
  Training training;
  for (int i = 0; i < 5; ++i) training.Step();
  const uint64_t signature = training.meter.signature();
  training.Do(77, 4);
  for (int i = 0; i < 3; ++i) training.Step();
  EXPECT_EQ(training.meter.signature(), signature);
}

TEST(StepMeter, LostRecordsAndFailuresMakeNoStep) {
  Training training;
  for (int i = 0; i < 5; ++i) training.Step();
  const size_t before = training.steps.size();
  training.Do(1, 10);
  training.meter.Skip();
  training.Do(2, 1000, 500);
  EXPECT_EQ(training.steps.size(), before);
  const TraceRecord failed{
      .stamp = training.now + 5, .kind = TraceKind::kDone, .id = 2, .bytes = 1000, .status = 6};
  training.meter.Add({&failed, 1}, &training.steps);
  EXPECT_EQ(training.steps.size(), before);
}

TEST(StepMeter, AStampThatGoesBackIsNoStep) {
  Training training;
  for (int i = 0; i < 5; ++i) training.Step();
  training.now = 0;
  for (int i = 0; i < 5; ++i) training.Step();
  for (const TrainingStep& step : training.steps) EXPECT_GT(step.duration_ns, 0);
}

TEST(ScoreOf, IsTheMedianInBytesPerMicrosecond) {
  EXPECT_EQ(ScoreOf({}), 0);
  const std::vector<TrainingStep> steps{{1000, 50}, {1000, 60}, {1'000'000'000, 60}};
  EXPECT_DOUBLE_EQ(ScoreOf(steps), 50);
}

}  // namespace
}  // namespace hvd
