#include "launcher/tuning/exchange_meter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hvd {
namespace {

// Rank 0 of a job over hosts: steps of six tensors, of which all but the first two travel together.
struct JobOverHosts {
  static constexpr uint64_t kAlphaUs = 200, kPeriodUs = 5000;

  ExchangeMeter meter;
  std::vector<TraceRecord> records;
  std::vector<TrainingStep> steps;
  uint64_t now_us = 1000;  // since the job began
  uint8_t collective = 0;
  uint64_t unit = 1;  // bytes

  void Activity(uint32_t id, TraceActivity activity, uint64_t us, uint64_t bytes,
                uint32_t tensors) {
    records.push_back({.stamp = us * 1000,
                       .kind = TraceKind::kActivity,
                       .part = TraceRecord::PartOf(activity, TraceAlgorithm::kUnknown),
                       .id = id,
                       .bytes = bytes,
                       .rank = tensors});
  }
  // The exchange of `tensors` ones of so many bytes each; when it is over.
  uint64_t Exchange(uint32_t first, uint32_t tensors, uint64_t bytes, uint64_t ready, uint64_t at) {
    const uint64_t time = bytes * tensors, copy = tensors > 1 ? time / 1000 : 0;
    const uint64_t sent = at + copy, over = sent + kAlphaUs + time / 100, all = time * unit;
    for (uint32_t id = first; id < first + tensors; ++id) {
      Activity(id, TraceActivity::kWaitForHosts, ready, 0, 1);
      Activity(id, TraceActivity::kQueue, ready + 5, 0, 1);
      if (tensors > 1) Activity(id, TraceActivity::kCopyIn, at, all, 1);
      Activity(id, TraceActivity::kGloo, sent, all, tensors);
      if (tensors > 1) Activity(id, TraceActivity::kCopyOut, over, all, 1);
      Activity(id, TraceActivity::kNone, over + copy, 0, 1);
      records.push_back({.stamp = (over + copy) * 1000 + id,
                         .kind = TraceKind::kDone,
                         .collective = collective,
                         .id = id,
                         .bytes = bytes * unit});
    }
    return over + copy;
  }
  void Step() {
    const uint64_t begun = now_us;
    uint64_t at = Exchange(1, 1, 4000, now_us, now_us);
    at = Exchange(2, 1, 8000, now_us, at);
    at = Exchange(3, 4, 16'000, now_us, at);
    now_us += kPeriodUs;
    steps.push_back({.duration_ns = static_cast<int64_t>(kPeriodUs) * 1000,
                     .bytes = 76'000,
                     .begun_ns = static_cast<int64_t>(begun) * 1000});
  }
  void Steps(int count) {
    for (int i = 0; i < count; ++i) Step();
    meter.Add(records);
    records.clear();
  }
  std::string Why() const { return meter.Model(steps, 128e6).status().message(); }
};

TEST(ExchangeMeter, TheModelIsThatOfTheJob) {
  JobOverHosts job;
  job.Steps(10);
  const Result<StepModel> model = job.meter.Model(job.steps, 128e6);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_NEAR(model->StepUs(128e6), JobOverHosts::kPeriodUs, 100);
  // Nothing together: three exchanges more.
  EXPECT_NEAR(model->StepUs(1), JobOverHosts::kPeriodUs + 3 * 200 - 2 * 64, 100);
}

TEST(ExchangeMeter, WithoutActivitiesThereIsNoModel) {
  JobOverHosts job;
  EXPECT_EQ(job.Why(), "no step was seen");
  job.steps.push_back({.duration_ns = 1000, .bytes = 1, .begun_ns = 1});
  EXPECT_EQ(job.Why(), "there were too few exchanges between hosts");
  for (uint32_t i = 1; i < 100; ++i) {
    job.records.push_back({.stamp = i, .kind = TraceKind::kDone, .id = i, .bytes = 100});
    job.records.push_back({.stamp = i, .kind = TraceKind::kActivity, .id = i});
  }
  job.meter.Add(job.records);
  EXPECT_EQ(job.Why(), "there were too few exchanges between hosts");
}

TEST(ExchangeMeter, AModelThatMissesTheStepsItIsMadeOfIsNone) {
  JobOverHosts job;
  job.Steps(10);
  for (uint64_t i = 1; i <= 300; ++i) {  // of other steps, far faster
    job.Activity(9, TraceActivity::kWaitForHosts, 1, 0, 1);
    job.Activity(9, TraceActivity::kGloo, 10, 200 * i, 1);
    job.Activity(9, TraceActivity::kNone, 12, 0, 1);
    job.records.push_back({.stamp = 1, .kind = TraceKind::kDone, .id = 9, .bytes = 200 * i});
  }
  job.meter.Add(job.records);
  EXPECT_TRUE(job.Why().ends_with("us, and they take 5000 us")) << job.Why();
}

TEST(ExchangeMeter, RecordsThatWereLostTeachNothing) {
  JobOverHosts job;
  job.Steps(10);
  job.Activity(1, TraceActivity::kWaitForHosts, 1, 0, 1);
  job.Activity(1, TraceActivity::kGloo, 2, 4000, 1);
  job.meter.Add(job.records);
  job.meter.Skip();
  job.records.assign(1, {.stamp = 1, .kind = TraceKind::kDone, .id = 1, .bytes = 4000});
  job.meter.Add(job.records);
  EXPECT_TRUE(job.meter.Model(job.steps, 128e6).ok());
}

TEST(ExchangeMeter, AScriptWithoutStepsIsNotRecordedForEver) {
  JobOverHosts job;
  EXPECT_FALSE(job.meter.full());
  job.records.assign(1000, {.stamp = 1, .kind = TraceKind::kDone, .id = 1, .bytes = 8});
  for (int i = 0; i < 1000; ++i) job.meter.Add(job.records);
  EXPECT_TRUE(job.meter.full());
}

TEST(ExchangeMeter, WhatIsNoAllreduceIsNotFused) {
  JobOverHosts job;
  job.collective = 2;  // HVD_BROADCAST
  job.Steps(10);
  const Result<StepModel> model = job.meter.Model(job.steps, 128e6);
  if (model.ok()) {
    EXPECT_DOUBLE_EQ(model->StepUs(128e6), model->StepUs(1));
  }
}

TEST(ExchangeMeter, LargeTensorsAreNotFused) {
  JobOverHosts job;
  job.unit = 2000;  // 8 MB and more
  job.Steps(10);
  const Result<StepModel> model = job.meter.Model(job.steps, 128e6);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_DOUBLE_EQ(model->StepUs(128e6), model->StepUs(1));
}

}  // namespace
}  // namespace hvd
