#include "launcher/job/policy/goodput.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

TimePoint At(int seconds) { return TimePoint(std::chrono::seconds(seconds)); }

TEST(Goodput, CountsTheTimeOfGenerations) {
  Goodput time;
  time.NoteStart(At(10));
  time.SetTraining(true, At(12));
  time.SetTraining(false, At(20));
  time.SetTraining(false, At(21));  // a second rank leaves it
  time.NoteStart(At(21));
  time.SetTraining(true, At(22));
  time.NoteEnd(At(30));
  EXPECT_EQ(time.trained(), std::chrono::seconds(16));
  EXPECT_EQ(time.total(), std::chrono::seconds(20));
  EXPECT_EQ(time.Text(), "ranks were training for 16 s of 20 s (80 %)");
}

TEST(Goodput, AWaitThatNeverEndedIsNoTraining) {
  Goodput time;
  time.NoteStart(At(0));
  time.SetTraining(true, At(0));
  time.SetIdle(0, std::chrono::seconds(2), At(12));  // since 10 s
  time.SetIdle(1, std::chrono::seconds(3), At(12));  // since 9 s
  time.SetTraining(false, At(32));
  EXPECT_EQ(time.trained(), std::chrono::seconds(9));
  time.SetTraining(true, At(40));
  time.NoteEnd(At(45));
  EXPECT_EQ(time.trained(), std::chrono::seconds(14)) << "the wait was of the former generation";
}

TEST(Goodput, AWaitThatEndsIsAPartOfTheTraining) {
  Goodput time;
  time.NoteStart(At(0));
  time.SetTraining(true, At(0));
  time.SetIdle(0, std::chrono::seconds(2), At(12));
  time.SetIdle(0, {}, At(30));
  time.SetTraining(false, At(32));
  time.SetIdle(0, std::chrono::seconds(9), At(33));  // too late
  time.SetTraining(true, At(40));
  time.NoteEnd(At(50));
  EXPECT_EQ(time.trained(), std::chrono::seconds(42));
}

TEST(Goodput, AJobThatNeverStartedHasNoTime) {
  Goodput time;
  time.NoteEnd(At(5));
  EXPECT_EQ(time.Text(), "ranks were training for 0 s of 0 s (0 %)");
}

}  // namespace
}  // namespace hvd
