// The handling of the troubles that ranks report.
#include "launcher/driver/services/rank_troubles.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

using std::chrono::seconds;

const TimePoint kStart = TimePoint(seconds(1000));

Plan TwoHosts() {
  Plan plan;
  plan.hosts = {"a", "b"};
  plan.ranks = {{0, 0, 0, 1, 0, 2}, {1, 1, 0, 1, 1, 2}};
  return plan;
}

TEST(RankTroubles, AreEventsAtOnceUnlessARouteIsSilent) {
  RankTroubles troubles(seconds(10));
  auto ending = troubles.Handle(TwoHosts(), 1, 4, RankEnding{1, "stalled"}, kStart);
  ASSERT_TRUE(ending && std::holds_alternative<GenerationEnding>(*ending));
  EXPECT_EQ(std::get<GenerationEnding>(*ending).generation, 4U);
  EXPECT_EQ(std::get<GenerationEnding>(*ending).by.reason, "stalled");
  auto stopped = troubles.Handle(TwoHosts(), 0, 4, RankStopped{0}, kStart);
  ASSERT_TRUE(stopped && std::holds_alternative<RankStopped>(*stopped));
  EXPECT_FALSE(troubles.Handle(TwoHosts(), 0, 4, RankSilent{0, 1, 3000}, kStart));
}

TEST(RankTroubles, OfAnotherHostsRankAreDropped) {
  RankTroubles troubles(seconds(10));
  EXPECT_FALSE(troubles.Handle(TwoHosts(), 0, 4, RankEnding{1, "stalled"}, kStart));
  EXPECT_FALSE(troubles.Handle(TwoHosts(), 1, 4, RankStopped{0}, kStart));
  EXPECT_FALSE(troubles.Handle(TwoHosts(), 0, 4, RankStopped{2}, kStart))
      << "there is no such rank";
  EXPECT_FALSE(troubles.Handle(TwoHosts(), 0, 4, RankSilent{1, 0, 3000}, kStart));
  EXPECT_FALSE(troubles.Handle(TwoHosts(), 0, 4, RankSilent{0, 2, 3000}, kStart));
  EXPECT_EQ(troubles.NextTick(kStart), TimePoint::max());
}

TEST(RankTroubles, BreakARouteThatIsSilentForTooLongOnce) {
  RankTroubles troubles(seconds(10));
  (void)troubles.Handle(TwoHosts(), 0, 4, RankSilent{0, 1, 3000}, kStart);
  EXPECT_LT(troubles.NextTick(kStart), TimePoint::max());
  const auto all_heard = [](uint32_t) { return true; };
  EXPECT_FALSE(troubles.PopBroken(kStart + seconds(5), all_heard));
  const auto broken = troubles.PopBroken(kStart + seconds(9), all_heard);
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->rank, 0U);
  EXPECT_EQ(broken->peer, 1U);
  EXPECT_FALSE(troubles.PopBroken(kStart + seconds(9), all_heard));
}

}  // namespace
}  // namespace hvd
