#include "launcher/tuning/tuned_axes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "launcher/tuning/job_tuner.h"
#include "launcher/tuning/tuning_log.h"
#include "runtime/backends/shm/chunking.h"
#include "runtime/core/wait_policy.h"

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Tuned(TunedWorld world, std::vector<std::string> variables = {}) {
  std::vector<std::string> names;
  for (const TuneAxis& axis : TunedAxes(world, variables)) {
    if (!axis.pinned) names.push_back(axis.name);
  }
  return names;
}

TEST(TunedAxes, AreThoseWithAnEffectInThisWorld) {
  EXPECT_THAT(Tuned({1, 1, 4}), IsEmpty());
  EXPECT_THAT(Tuned({4, 4, 4}), ElementsAre("chunk_kib", "wait_spins"));
  EXPECT_THAT(Tuned({4, 4, 2}), ElementsAre("chunk_kib", "wait_yields"));
  EXPECT_THAT(Tuned({4, 2, 2}), ElementsAre("tensor_fusion_threshold", "stripes"));
}

// R12: a search that cannot choose the default can only lose.
TEST(TunedAxes, TheDefaultsAreWellInsideOfTheRanges) {
  for (const TuneAxis& axis : TunedAxes({4, 4, 4}, {})) {
    const bool none_is_less = axis.name == "stripes";  // than one connection
    EXPECT_LE(none_is_less ? axis.low : 2 * axis.low, axis.initial) << axis.name;
    EXPECT_LE(2 * axis.initial, axis.high) << axis.name;
  }
  const WaitPolicy alone = ChooseWaitPolicy(2, 2), crowded = ChooseWaitPolicy(4, 2);
  const std::vector<TuneAxis> axes = TunedAxes({4, 4, 4}, {});
  EXPECT_EQ(axes[kChunkKib].initial * 1024, Chunking::kLargestChunk);
  EXPECT_EQ(axes[kWaitSpins].initial, alone.spins);
  EXPECT_EQ(axes[kWaitYields].initial, crowded.yields);
}

TEST(TunedAxes, WhatTheUserSetIsPinnedThere) {
  const std::vector<std::string> variables{"HVD_CHUNK_KIB=64", "HOROVOD_FUSION_THRESHOLD=2097152"};
  EXPECT_THAT(Tuned({4, 4, 4}, variables), ElementsAre("wait_spins"));
  const std::vector<TuneAxis> axes = TunedAxes({4, 4, 4}, variables);
  EXPECT_EQ(axes[kChunkKib].initial, 64);
  EXPECT_EQ(axes[kFusionMb].initial, 2);
  EXPECT_TRUE(SearchSpace::Make(axes).ok());
}

TEST(TunedAxes, AChoiceIsWrittenWithOneAdded) {
  const std::vector<TuneAxis> axes = TunedAxes({4, 4, 4}, {});
  TunedSettings settings{};
  Apply({256, 1000, 7, 32, 4}, axes, &settings);
  EXPECT_EQ(settings.chunk_kib.load(), 256U);
  EXPECT_EQ(settings.spins.load(), 1001U);
  EXPECT_EQ(settings.yields.load(), 0U);  // without effect here: left alone
  EXPECT_EQ(settings.fusion.load(), 0U);
  EXPECT_EQ(settings.stripes.load(), 0U);
  EXPECT_EQ(ChosenOr(settings.spins, 5U), 1000U);
  EXPECT_EQ(ChosenOr(settings.yields, 5U), 5U);
  EXPECT_EQ(FlagsOf({256, 1000, 7, 32, 4}, axes), "--chunk-kib 256 --wait-spins 1000");
  Apply({256, 1000, 7, 32, 4}, TunedAxes({4, 2, 2}, {}), &settings);
  EXPECT_EQ(ChosenOr(settings.fusion, uint64_t{1}), uint64_t{32} << 20);
  EXPECT_EQ(ChosenOr(settings.stripes, 1U), 4U);
}

TEST(TuningSettingsOf, AreTheVariablesOfTheWorkers) {
  EXPECT_FALSE(TuningSettingsOf({"HOROVOD_AUTOTUNE_LOG=x"}, "/d"));
  EXPECT_FALSE(TuningSettingsOf({"HOROVOD_AUTOTUNE=0"}, "/d"));
  const auto settings = TuningSettingsOf(
      {"HOROVOD_AUTOTUNE=1", "HOROVOD_AUTOTUNE_LOG=a=b.csv", "HVD_AUTOTUNE_REPORT=/r/x.html",
       "HVD_AUTOTUNE_MEMORY=0", "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE=7"},
      "/d");
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->log_file, "/d/a=b.csv");
  EXPECT_EQ(settings->report, "/r/x.html");
  EXPECT_FALSE(settings->memory);
  EXPECT_EQ(settings->steps, 7U);
  EXPECT_EQ(settings->warmup_windows, 3U);
}

TEST(TuningLog, HasTheColumnsOfHorovodFirst) {
  EXPECT_TRUE(TuningHeader().starts_with(
      "hierarchical_allreduce,hierarchical_allgather,torus_allreduce,cache_enabled,cycle_time_ms,"
      "tensor_fusion_threshold,score,"));
  EXPECT_EQ(TextOf({{128, 400, 50, 128, 2}, "default", 1234.5, 5, 2.25}),
            "0,0,0,1,0,128,1234.5,128,400,50,2,default,5,2.2500,0.0000\n");
}

}  // namespace
}  // namespace hvd
