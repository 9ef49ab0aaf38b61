#include "launcher/job/policy/cooldown.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

using namespace std::chrono_literals;

TEST(Cooldown, DoublesWithEachFailureWithinTheRange) {
  struct Case {
    Duration lo, hi;
    uint32_t failures;
    double jitter;
    Duration delay;
  };
  const Case cases[] = {
      {10s, 100s, 1, 0, 20s},  {10s, 100s, 1, 1, 30s},  {10s, 100s, 1, 0.5, 25s},
      {10s, 100s, 2, 0, 40s},  {10s, 100s, 3, 0, 80s},  {10s, 100s, 3, 1, 90s},
      {10s, 100s, 4, 0, 100s}, {10s, 100s, 4, 1, 100s}, {10s, 100s, 4'000'000'000, 1, 100s},
      {10s, 10s, 1, 0, 10s},   {1s, 3600s, 1, 0, 2s},   {3600s, 3600s, 9, 0.3, 3600s},
      {10s, 15s, 1, 0.9, 15s},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(CooldownAfter({c.lo, c.hi}, c.failures, c.jitter), c.delay)
        << c.lo.count() << " " << c.failures << " " << c.jitter;
  }
}

}  // namespace
}  // namespace hvd
