#include "autotune/step_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace hvd {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
const ExchangeCosts kCosts{.alpha_us = 100, .beta_us_per_byte = 0.01, .gamma_us_per_byte = 0.001};

ExchangeSample Sample(double bytes, size_t tensors = 1) {
  return {.bytes = bytes,
          .tensors = tensors,
          .exchange_us = kCosts.Of(bytes, 1),
          .copy_us = tensors > 1 ? kCosts.gamma_us_per_byte * bytes : 0,
          .weight = 1 / static_cast<double>(tensors)};
}

std::vector<ExchangeSample> Samples() {
  std::vector<ExchangeSample> samples;
  for (double bytes = 1000; bytes < 1e6; bytes *= 2)
    samples.push_back(Sample(bytes, bytes > 1e5 ? 4 : 1));
  return samples;
}

TEST(FitCosts, FindsTheLineThatMadeTheSamples) {
  const Result<ExchangeCosts> costs = FitCosts(Samples());
  ASSERT_TRUE(costs.ok());
  EXPECT_NEAR(costs->alpha_us, 100, 1e-6);
  EXPECT_NEAR(costs->beta_us_per_byte, 0.01, 1e-9);
  EXPECT_NEAR(costs->gamma_us_per_byte, 0.001, 1e-9);
}

TEST(FitCosts, AnExchangeThatWasHeldUpCountsForLittle) {
  std::vector<ExchangeSample> samples = Samples();
  samples.push_back(Sample(4000));
  samples.back().exchange_us = 1e6;
  const Result<ExchangeCosts> costs = FitCosts(samples);
  ASSERT_TRUE(costs.ok());
  EXPECT_NEAR(costs->Of(4000, 1), 140, 10);
  EXPECT_NEAR(costs->Of(500'000, 1), 5100, 250);
}

TEST(FitCosts, NoCostIsBelowZero) {
  std::vector<ExchangeSample> falling, through;
  for (double bytes = 1000; bytes < 1e6; bytes *= 2) {
    falling.push_back({.bytes = bytes, .exchange_us = 1e6 / bytes});
    through.push_back({.bytes = bytes, .exchange_us = 1e-6 * bytes * bytes});
  }
  for (const std::vector<ExchangeSample>& samples : {falling, through}) {
    const Result<ExchangeCosts> costs = FitCosts(samples);
    ASSERT_TRUE(costs.ok());
    EXPECT_GE(costs->alpha_us, 0);
    EXPECT_GE(costs->beta_us_per_byte, 0);
    EXPECT_EQ(costs->gamma_us_per_byte, 0);
  }
}

TEST(FitCosts, WhatCannotTellAlphaFromBetaIsASentence) {
  EXPECT_FALSE(FitCosts({}).ok());
  EXPECT_FALSE(FitCosts(std::vector<ExchangeSample>(5, Sample(1000))).ok());
  EXPECT_EQ(FitCosts(std::vector<ExchangeSample>(50, Sample(1000))).status().message(),
            "the exchanges between hosts had nearly the same size");
}

TEST(FitCosts, SamplesThatAreNoNumbersAreLeftOut) {
  std::vector<ExchangeSample> samples = Samples();
  for (const double bad : {kNotANumber, 0.0, -1.0, std::numeric_limits<double>::infinity()}) {
    samples.push_back({.bytes = bad, .exchange_us = 10});
    samples.push_back({.bytes = 10, .exchange_us = bad});
  }
  ASSERT_TRUE(FitCosts(samples).ok());
  EXPECT_NEAR(FitCosts(samples)->alpha_us, 100, 1e-6);
}

// Four tensors at once, then nothing until the next step.
std::vector<ObservedOperation> Four(double at = 0) {
  return {
      {at, at + 1000, 1000}, {at, at + 1100, 1000}, {at, at + 1200, 1000}, {at, at + 1200, 1000}};
}

TEST(StepModel, TwoAreUnderWayAndWhatWaitsTravelsTogether) {
  const Result<StepModel> model = StepModel::Make(kCosts, Four(), 2000);
  ASSERT_TRUE(model.ok());
  // Two alone, then two together; a rest of 800.
  EXPECT_NEAR(model->StepUs(1e6), 2 * 110 + 122 + 800, 1e-6);
  EXPECT_NEAR(model->StepUs(2000), 2 * 110 + 122 + 800, 1e-6);
  EXPECT_NEAR(model->StepUs(1999), 4 * 110 + 800, 1e-6);
}

TEST(StepModel, WhatComesLateIsWaitedFor) {
  std::vector<ObservedOperation> operations = Four();
  operations.push_back({1500, 1700, 1000});
  const Result<StepModel> model = StepModel::Make(kCosts, operations, 2000);
  ASSERT_TRUE(model.ok());
  EXPECT_NEAR(model->StepUs(1e6), 1500 + 110 + 300, 1e-6);
  EXPECT_NEAR(model->StepUs(1), 1500 + 110 + 300, 1e-6) << "the others are done by then";
}

TEST(StepModel, WhatMayNotTravelWithOthersTravelsAlone) {
  std::vector<ObservedOperation> operations = Four();
  for (ObservedOperation& seen : operations) seen.fuses = false;
  const Result<StepModel> model = StepModel::Make(kCosts, operations, 2000);
  ASSERT_TRUE(model.ok());
  EXPECT_NEAR(model->StepUs(1e6), 4 * 110 + 800, 1e-6);
}

// The period may be cut anywhere: the step begins after the longest rest.
TEST(StepModel, TheStepBeginsWhereNothingIsUnderWay) {
  const Result<StepModel> whole = StepModel::Make(kCosts, Four(500), 2000);
  ASSERT_TRUE(whole.ok());
  EXPECT_NEAR(whole->StepUs(1e6), 2 * 110 + 122 + 800, 1e-6);

  std::vector<ObservedOperation> cut = Four(1500);
  for (size_t i = 2; i < 4; ++i) {
    cut[i].ready_us -= 2000;
    cut[i].done_us -= 2000;
  }
  const Result<StepModel> model = StepModel::Make(kCosts, cut, 2000);
  ASSERT_TRUE(model.ok());
  EXPECT_NEAR(model->StepUs(1e6), whole->StepUs(1e6), 1e-6);
}

TEST(StepModel, StepsThatOverlapAreNotPredicted) {
  const Result<StepModel> model = StepModel::Make(kCosts, Four(), 1100);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().message(), "a step begins before the one before has ended");
}

TEST(StepModel, NothingIsPredictedOfNothing) {
  EXPECT_FALSE(StepModel::Make(kCosts, {}, 1000).ok());
  EXPECT_FALSE(StepModel::Make(kCosts, {{0, 10, 10}}, 1000).ok());
  for (const double bad : {kNotANumber, std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(StepModel::Make(kCosts, {{0, 10, 10}, {bad, 10, 10}}, 1000).ok());
    EXPECT_FALSE(StepModel::Make(kCosts, {{0, 10, 10}, {0, bad, 10}}, 1000).ok());
    EXPECT_FALSE(StepModel::Make(kCosts, {{0, 10, 10}, {0, 10, bad}}, 1000).ok());
    EXPECT_FALSE(StepModel::Make(kCosts, Four(), bad).ok());
    EXPECT_FALSE(StepModel::Make({.alpha_us = bad}, Four(), 2000).ok());
  }
}

// Small tensors over a slow link: a setting that saves exchanges is better, whatever the costs are.
TEST(StepModel, MoreTogetherIsNeverSlowerWhereCopiesCostNothing) {
  std::vector<ObservedOperation> operations;
  for (int i = 0; i < 200; ++i) operations.push_back({i * 5.0, 20'000.0, 1000.0 * (1 + i % 7)});
  const Result<StepModel> model =
      StepModel::Make({.alpha_us = 300, .beta_us_per_byte = 0.01}, operations, 25'000);
  ASSERT_TRUE(model.ok());
  EXPECT_GT(model->StepUs(1), 200 * 300);
  EXPECT_LT(model->StepUs(1e9), model->StepUs(20'000));
  EXPECT_LT(model->StepUs(20'000), model->StepUs(1));
}

}  // namespace
}  // namespace hvd
