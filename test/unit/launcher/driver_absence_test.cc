// The decisions of an agent while its driver is away or silent.
#include <gtest/gtest.h>

#include "launcher/agent/driver_connection.h"

namespace hvd {
namespace {

using std::chrono::seconds;

const TimePoint kStart = TimePoint(seconds(1000));

TEST(DriverAbsence, BeginsOnceAndLastsForTheGrace) {
  DriverAbsence absence;
  absence.set_grace(seconds(60));
  EXPECT_TRUE(absence.Begin());
  EXPECT_FALSE(absence.Begin()) << "it was lost already";
  EXPECT_TRUE(absence.away());
  EXPECT_EQ(absence.grace(), Duration(seconds(60)));
  absence.End();
  EXPECT_FALSE(absence.away());
  EXPECT_TRUE(absence.Begin());
}

TEST(DriverAbsence, IsShortForAJobThatIsEnding) {
  DriverAbsence absence;
  absence.set_grace(seconds(60));
  absence.NoteEnding();
  EXPECT_EQ(absence.grace(), DriverAbsence::kEndingGrace);
  absence.set_grace(seconds(2));
  EXPECT_EQ(absence.grace(), Duration(seconds(2)));
}

TEST(DriverAbsence, KeepsAMebibyteOfOutputForTheDriver) {
  DriverAbsence absence;
  EXPECT_FALSE(absence.HasRoom()) << "a connected driver grants credit";
  absence.set_grace(seconds(60));
  absence.NoteOutput(DriverAbsence::kMostHeldBytes);
  (void)absence.Begin();
  EXPECT_TRUE(absence.HasRoom()) << "what was printed before does not count";
  absence.NoteOutput(DriverAbsence::kMostHeldBytes - 1);
  EXPECT_TRUE(absence.HasRoom());
  (void)absence.Begin();
  absence.NoteOutput(1);
  EXPECT_FALSE(absence.HasRoom()) << "a second loss makes no room";
  absence.End();
  (void)absence.Begin();
  EXPECT_TRUE(absence.HasRoom());
}

TEST(DriverAbsence, DropsOutputOnceTheDriverIsGivenUp) {
  DriverAbsence absence;
  absence.GiveUp();
  EXPECT_TRUE(absence.over());
  absence.NoteOutput(10 * DriverAbsence::kMostHeldBytes);
  EXPECT_TRUE(absence.HasRoom());
}

TEST(DriverAbsence, TakesSilenceForALossUnlessTheJobIsPaused) {
  DriverAbsence absence;
  EXPECT_FALSE(absence.IsSilent(kStart, kStart + seconds(1000))) << "no limit";
  absence.set_silence_limit(seconds(5));
  EXPECT_FALSE(absence.IsSilent(kStart, kStart + seconds(4)));
  EXPECT_TRUE(absence.IsSilent(kStart, kStart + seconds(5)));
  absence.set_paused(true);
  EXPECT_FALSE(absence.IsSilent(kStart, kStart + seconds(5)));
  absence.set_paused(false);
  EXPECT_TRUE(absence.IsSilent(kStart, kStart + seconds(5)));
}

}  // namespace
}  // namespace hvd
