// The clocks of hosts run at rates of their own: the stamps as a timeline has them.
#include "launcher/live/host_offset.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

#include "launcher/job/host_records/host_clock.h"

namespace hvd {
namespace {

using std::chrono::seconds;

constexpr int64_t kUs = 1000, kMs = 1'000'000, kSecond = 1'000'000'000;

struct Host {
  const char* name;
  int64_t ahead_ns;
  double ppm;
};

class HostOffsetTest : public ::testing::TestWithParam<Host> {
 protected:
  int64_t Shows(int64_t ns) const {
    const double gained = GetParam().ppm * 1e-6 * static_cast<double>(ns);
    return ns + GetParam().ahead_ns + static_cast<int64_t>(gained);
  }
  // One way through the network.
  int64_t Way() { return 50 * kUs + std::uniform_int_distribution<int64_t>(0, 20 * kUs)(random_); }
  void Ask(int64_t now_ns) {
    const int64_t there = now_ns + Way();
    clock_.Add({TimePoint(Duration(now_ns)), TimePoint(Duration(there + Way())), Shows(there)});
  }
  // The time of an event of the host, as the timeline has it.
  int64_t Placed(int64_t now_ns) {
    const int64_t stamp = Shows(now_ns);
    return stamp + offset_.At(clock_, stamp).value_or(0);
  }

  std::mt19937_64 random_{7};
  HostClock clock_;
  HostOffset offset_;
};

TEST_P(HostOffsetTest, IsWithinItsUncertaintyAndKeepsCauseBeforeEffect) {
  constexpr int64_t kBegin = 1000 * kSecond;
  for (int i = 0; i < 4; ++i) Ask(kBegin + i * kMs);
  int64_t last = 0;
  for (int64_t now = kBegin + 10 * kMs; now < kBegin + 300 * kSecond; now += 10 * kMs) {
    if (now % (2 * kSecond) == 0) Ask(now);
    const int64_t placed = Placed(now);
    ASSERT_LE(std::abs(placed - now), offset_.uncertainty_ns()) << (now - kBegin) / kMs << " ms";
    ASSERT_GT(placed, last);
    last = placed;
    // The rate is known from the first question on that comes later.
    if (now < kBegin + 4 * kSecond) continue;
    ASSERT_LT(placed, now + Way()) << "an event here that it caused";
    ASSERT_GT(placed, now - Way()) << "an event here that caused it";
  }
}

INSTANTIATE_TEST_SUITE_P(, HostOffsetTest,
                         ::testing::Values(Host{"Even", 0, 0},
                                           Host{"AheadAndFast", 5 * kSecond, 100},
                                           Host{"BehindAndSlow", -3 * kSecond, -100},
                                           Host{"VeryFast", 3600 * kSecond, 400}),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(HostClockTest, ARateThatCannotBeIsNotBelieved) {
  HostClock clock;
  clock.Add({TimePoint(seconds(10)), TimePoint(seconds(10)), 10 * kSecond});
  clock.Add({TimePoint(seconds(20)), TimePoint(seconds(20)), 25 * kSecond});  // was suspended
  clock.Add({TimePoint(seconds(22)), TimePoint(seconds(22)), 27 * kSecond});
  const auto moment = clock.Convert(28 * kSecond);
  ASSERT_TRUE(moment);
  EXPECT_EQ(moment->at, TimePoint(seconds(23)));
}

}  // namespace
}  // namespace hvd
