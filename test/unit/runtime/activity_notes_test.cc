#include "runtime/backends/activity_notes.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

TEST(ActivityNotesTest, AnActivityThatGoesOnIsOneNote) {
  ActivityNotes notes;
  notes.Begin({.bytes = 3, .activity = TraceActivity::kCopyIn});
  notes.Begin({.bytes = 4, .activity = TraceActivity::kCopyIn});
  notes.End();
  ASSERT_EQ(notes.all().size(), 2U);
  EXPECT_EQ(notes.all()[0].bytes, 7U);
  EXPECT_EQ(notes.all()[1].activity, TraceActivity::kNone);
}

TEST(ActivityNotesTest, WhatDoesNotFitIsNotNoted) {
  ActivityNotes notes;
  for (size_t i = 0; i < ActivityNotes::kMost; ++i) {
    notes.Begin({.activity = TraceActivity::kQueue});
    notes.End();
  }
  EXPECT_EQ(notes.all().size(), ActivityNotes::kMost);
}

TEST(ActivityNotesTest, TheWayOfTheNewestIsThatOfTheOperation) {
  ActivityNotes leader, rank;
  leader.Begin({.activity = TraceActivity::kGloo});
  leader.SetAlgorithm(TraceAlgorithm::kSliced);
  rank.Append(leader);
  EXPECT_EQ(rank.algorithm(), TraceAlgorithm::kSliced);
  EXPECT_EQ(rank.all()[0].algorithm, TraceAlgorithm::kSliced);
  rank.Clear();
  EXPECT_TRUE(rank.all().empty());
  EXPECT_EQ(rank.algorithm(), TraceAlgorithm::kSliced);
}

TEST(ActivityNotesTest, NobodyWhoWantsToKnowIsNoError) {
  const NotedActivity activity(nullptr, TraceActivity::kCopyIn, 1);
  NoteAlgorithm(nullptr, TraceAlgorithm::kTree);
}

}  // namespace
}  // namespace hvd
