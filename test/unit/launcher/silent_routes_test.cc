#include "launcher/job/host_records/silent_routes.h"

#include <gtest/gtest.h>

#include <set>

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{seconds(100)};

std::function<bool(uint32_t)> All() {
  return [](uint32_t) { return true; };
}
std::function<bool(uint32_t)> AllBut(uint32_t rank) {
  return [rank](uint32_t r) { return r != rank; };
}

TEST(SilentRoutes, BreakAfterAsLongAsAHostMayBeSilent) {
  SilentRoutes routes(seconds(5));
  EXPECT_EQ(routes.NextLook(kStart), TimePoint::max());
  routes.Note({0, 2, 3000}, 7, kStart);
  EXPECT_EQ(routes.NextLook(kStart), kStart + seconds(2)) << "3 of the 5 s are over already";
  EXPECT_FALSE(routes.Broken(kStart + milliseconds(1999), All()));
  const std::optional<SilentRoute> broken = routes.Broken(kStart + seconds(2), All());
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->rank, 0u);
  EXPECT_EQ(broken->peer, 2u);
  EXPECT_EQ(broken->generation, 7u);
  EXPECT_EQ(broken->silent, seconds(5));
}

TEST(SilentRoutes, AreNotBrokenWhenTheyAreHeardAgain) {
  SilentRoutes routes(seconds(5));
  routes.Note({0, 2, 3000}, 7, kStart);
  routes.Note({0, 2, 0}, 7, kStart + seconds(1));
  EXPECT_FALSE(routes.Broken(kStart + seconds(60), All()));
  EXPECT_EQ(routes.NextLook(kStart), TimePoint::max());
}

TEST(SilentRoutes, AHostThatIsSilentItselfIsTheHeartbeatsBusiness) {
  SilentRoutes routes(seconds(5));
  routes.Note({0, 2, 3000}, 7, kStart);
  const TimePoint late = kStart + seconds(30);
  EXPECT_FALSE(routes.Broken(late, AllBut(0)));
  EXPECT_FALSE(routes.Broken(late, AllBut(2)));
  EXPECT_EQ(routes.NextLook(late), late + milliseconds(250)) << "it may come back, or be lost";
  EXPECT_TRUE(routes.Broken(late, All()));
}

TEST(SilentRoutes, TheLongestSilenceIsTold) {
  SilentRoutes routes(seconds(5));
  routes.Note({0, 2, 3000}, 7, kStart);
  routes.Note({1, 3, 3500}, 7, kStart);
  routes.Note({4, 5, 3200}, 7, kStart);
  EXPECT_EQ(routes.Broken(kStart + seconds(3), All())->rank, 1u);
  EXPECT_EQ(routes.Broken(kStart + seconds(3), AllBut(3))->rank, 4u);
}

}  // namespace
}  // namespace hvd
