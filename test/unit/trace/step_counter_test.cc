#include "runtime/trace/step_counter.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

struct CountedRank {
  StepCounter counter;

  void Done(uint32_t id, uint64_t bytes, uint32_t status = 0) {
    TraceRecord record{.kind = TraceKind::kDone, .id = id, .bytes = bytes};
    record.status = status;
    counter.Add(record);
  }
  void Mark() { counter.Add({.kind = TraceKind::kStep}); }
};

TEST(StepCounterTest, AStepIsAnEndOfTheLargestCollectiveThatComesBack) {
  CountedRank rank;
  rank.Done(1, 1'000'000);  // parameters, once
  for (int step = 0; step < 5; ++step) {
    rank.Done(2, 40);
    rank.Done(2, 40);
    rank.Done(3, 4000);
  }
  EXPECT_EQ(rank.counter.steps(), 5U);
}

TEST(StepCounterTest, MarksOfAnOptimizerCountMore) {
  CountedRank rank;
  for (int step = 0; step < 6; ++step) {
    rank.Done(3, 4000);
    if (step % 2 == 1) rank.Mark();
  }
  EXPECT_EQ(rank.counter.steps(), 3U);
}

TEST(StepCounterTest, WhatFailsOrComesOnceIsNoStep) {
  CountedRank rank;
  for (uint32_t id = 1; id < 9; ++id) rank.Done(id, 4000);
  for (int i = 0; i < 9; ++i) rank.Done(20, 4000, /*status=*/6);
  EXPECT_EQ(rank.counter.steps(), 0U);
}

TEST(StepCounterTest, StepsGoOnInAnotherGeneration) {
  CountedRank rank;
  for (int i = 0; i < 4; ++i) rank.Done(1, 4000);
  rank.counter.BeginRing();
  for (int i = 0; i < 3; ++i) rank.Done(1, 20);
  EXPECT_EQ(rank.counter.steps(), 7U);
}

}  // namespace
}  // namespace hvd
