#include "launcher/agent/pulse.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

bool MissedInVain(PulseWatch& watch, uint32_t looks, bool bearer_alive) {
  for (uint32_t i = 0; i < looks; ++i) {
    if (watch.Missed(bearer_alive)) return false;
  }
  return true;
}

TEST(PulseWatch, EndsASilentAgentThatNobodyLeads) {
  PulseWatch watch;
  EXPECT_TRUE(MissedInVain(watch, PulseWatch::kMostMissed - 1, false));
  EXPECT_TRUE(watch.Missed(false));
}

TEST(PulseWatch, LeavesASilentAgentToALiveDriver) {
  PulseWatch watch;
  EXPECT_TRUE(MissedInVain(watch, 1000, true));
  EXPECT_TRUE(MissedInVain(watch, PulseWatch::kMostMissed - 1, false))
      << "counts from the driver's end";
  EXPECT_TRUE(watch.Missed(false));
}

TEST(PulseWatch, WaitsForAPulseAndForADriverThatMayComeBack) {
  PulseWatch watch;
  EXPECT_TRUE(MissedInVain(watch, PulseWatch::kMostMissed - 1, false));
  watch.Heard({0, 30});
  EXPECT_TRUE(MissedInVain(watch, PulseWatch::kMostMissed + 29, false));
  EXPECT_TRUE(watch.Missed(false));
}

TEST(Pulse, TheNewestIsHeardAndTheEnd) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);
  UniqueFd reading(ends[0]), writing(ends[1]);
  EXPECT_FALSE(OnHeartbeat(reading.get()).newest);
  SendPulse(writing.get(), {1, 2});
  SendPulse(writing.get(), {3, 4});
  PulseReading heard = OnHeartbeat(reading.get());
  ASSERT_TRUE(heard.newest);
  EXPECT_EQ(heard.newest->bearer, 3);
  EXPECT_EQ(heard.newest->grace_looks, 4U);
  EXPECT_FALSE(heard.ended);
  for (int i = 0; i < 100'000; ++i) SendPulse(writing.get(), {5, 6});  // never waits
  OnHeartbeat(reading.get());
  writing.Reset();
  EXPECT_TRUE(OnHeartbeat(reading.get()).ended);
}

}  // namespace
}  // namespace hvd
