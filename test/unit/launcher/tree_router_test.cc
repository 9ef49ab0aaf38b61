// The messages that the driver sends over a host's own stream and those down the tree, and the ones
// that it takes from each host.
#include "launcher/overlay/tree/tree_router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace hvd {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const TimePoint kTreeStart = TimePoint(seconds(1000));

// Hosts h0, h1, ... with one rank each, but for those without one.
Plan PlanOf(uint32_t hosts, std::vector<uint32_t> without_rank = {}) {
  Plan plan;
  for (uint32_t host = 0; host < hosts; ++host) {
    plan.hosts.push_back("h" + std::to_string(host));
    if (std::find(without_rank.begin(), without_rank.end(), host) != without_rank.end()) continue;
    const uint32_t rank = plan.size();
    plan.ranks.push_back({rank, host, 0, 1, rank, 0});
  }
  for (Placement& rank : plan.ranks) rank.cross_size = plan.size();
  return plan;
}

struct Sent {
  std::vector<uint32_t> hosts;
  std::vector<ToAgent> messages;

  TreeRouter::Sender sender() {
    return [this](uint32_t host, const ToAgent& message) {
      hosts.push_back(host);
      messages.push_back(message);
    };
  }
};

TEST(TreeRouter, NumbersTheHostsThatHaveARank) {
  Sent sent;
  TreeRouter router(sent.sender());
  EXPECT_FALSE(router.formed());
  EXPECT_FALSE(router.Has(0));
  router.Form(PlanOf(4, {1}), 8);
  EXPECT_THAT(router.hosts(), ElementsAre(0, 2, 3));
  EXPECT_TRUE(router.Has(2));
  EXPECT_FALSE(router.Has(1));
  EXPECT_EQ(router.NumberOf(3), 2U);
  router.Form(PlanOf(2), 1);
  EXPECT_EQ(router.count(), 3U) << "the first plan counts";
}

TEST(TreeRouter, SendsDirectlyWhileThereAreFewHosts) {
  Sent sent;
  TreeRouter router(sent.sender());
  router.Form(PlanOf(4, {0}), 3);
  EXPECT_TRUE(router.flat());
  router.ToHost(2, {5, "key", "value"});
  EXPECT_THAT(sent.hosts, ElementsAre(2));
  StartJob start;
  router.SetPlace(2, start);
  EXPECT_EQ(start.tree.hosts, 0U);
}

TEST(TreeRouter, SendsOverTheTopOfTheTreeWhereThereIsOne) {
  Sent sent;
  TreeRouter router(sent.sender());
  router.Form(PlanOf(7, {0}), 2);  // the tree's 0..5: h1 above h2 and h3, h4 above h5 and h6
  router.ToHost(6, {0, "key", "value"});
  EXPECT_THAT(sent.hosts, ElementsAre(6)) << "generation 0 is before the tree";
  sent = {};
  router.ToAll(BeginGeneration{1});
  router.ToHost(6, {1, "key", "value"});
  EXPECT_THAT(sent.hosts, IsEmpty()) << "gathers until Flush";
  router.Flush();
  EXPECT_THAT(sent.hosts, ElementsAre(1, 4));
  EXPECT_EQ(std::get<TreeDown>(sent.messages[0]).entries.size(), 1U);
  EXPECT_EQ(std::get<TreeDown>(sent.messages[1]).entries.size(), 2U);
}

TEST(TreeRouter, TakesOtherRanksOnTheSameHosts) {
  for (const uint32_t radix : {8u, 1u}) {
    Sent sent;
    TreeRouter router(sent.sender());
    const std::vector<std::string> hosts = {"a", "b"};
    router.UseRanks(PlanOfPlaces(hosts, {0, 0, 1, 1}));
    EXPECT_FALSE(router.formed()) << "there is nothing yet that has ranks";
    router.Form(PlanOfPlaces(hosts, {0, 0, 1, 1}), radix);
    const bool flat = router.flat();
    EXPECT_TRUE(router.CheckDirect(0, RankJoined{1}, true).ok());
    EXPECT_FALSE(router.CheckDirect(1, RankJoined{1}, true).ok());
    router.UseRanks(PlanOfPlaces(hosts, {0, 1, 0, 1}));
    EXPECT_EQ(router.flat(), flat);
    EXPECT_FALSE(router.CheckDirect(0, RankJoined{1}, true).ok());
    EXPECT_TRUE(router.CheckDirect(1, RankJoined{1}, true).ok());
  }
}

TEST(TreeRouter, TellsAHostHowWideTheTreeReallyIs) {
  Sent sent;
  TreeRouter router(sent.sender());
  router.Form(PlanOf(40, {}), 32);
  StartJob start;
  router.SetPlace(39, start);
  EXPECT_EQ(start.tree.radix, kWidestTree);
  EXPECT_EQ(start.tree.hosts, 40U);
}

TEST(TreeRouter, TellsAHostItsPlaceAndWhereItsParentListens) {
  Sent sent;
  TreeRouter router(sent.sender());
  router.Form(PlanOf(7, {0}), 2);
  router.NoteRecord(4, "record of h4");
  StartJob top, below;
  router.SetPlace(4, top);
  router.SetPlace(5, below);
  EXPECT_EQ(top.tree.host, 3U);
  EXPECT_EQ(top.tree.above, "") << "the driver is above it";
  EXPECT_EQ(below.tree.host, 4U);
  EXPECT_EQ(below.tree.hosts, 6U);
  EXPECT_EQ(below.tree.radix, 2U);
  EXPECT_EQ(below.tree.above, "record of h4");
  EXPECT_TRUE(router.HasChildren(4));
  EXPECT_FALSE(router.HasChildren(5));
}

TEST(TreeRouter, HasHostsProbeTheirNeighboursInTheTree) {
  Sent sent;
  TreeRouter router(sent.sender());
  router.Form(PlanOf(40), 3);
  for (uint32_t host : router.hosts()) {
    StartJob start;
    router.SetPlace(host, start);
    const std::optional<uint32_t> parent = PlaceInTree(host, 40, 3).parent;
    if (!parent) continue;
    EXPECT_THAT(router.ProbePartnersOf(host), testing::Contains(*parent)) << host;
  }
  router.Flatten();
  EXPECT_TRUE(router.flat());
  EXPECT_THAT(router.ProbePartnersOf(99), IsEmpty());
}

TEST(TreeRouter, TakesFromAHostWhatIsAboutItsOwnRanks) {
  Sent sent;
  TreeRouter router(sent.sender());
  EXPECT_TRUE(router.CheckDirect(1, AgentReady{}, false).ok()) << "before the plan is final";
  router.Form(PlanOf(3), 8);
  EXPECT_TRUE(router.CheckDirect(1, WorkerStarted{1, 7}, true).ok());
  EXPECT_FALSE(router.CheckDirect(1, WorkerStarted{2, 7}, true).ok());
  EXPECT_FALSE(router.CheckDirect(1, WorkerStarted{1, 7}, false).ok()) << "nothing was started yet";
}

TEST(TreeRouter, OpensABatchOfTheTopOfATreeOnly) {
  Sent sent;
  TreeRouter router(sent.sender());
  const TreeUp batch{{{4, EncodeToDriver(RankJoined{4})}}};
  router.Form(PlanOf(7, {0}), 2);
  auto opened = router.Open(4, batch);
  ASSERT_TRUE(opened.ok());
  ASSERT_EQ(opened->size(), 1U);
  EXPECT_EQ((*opened)[0].first, 5U) << "number 4 is h5";
  EXPECT_FALSE(router.Open(1, batch).ok()) << "h5 is not below h1";
  router.Flatten();
  EXPECT_THAT(router.Open(4, batch).status().message(), HasSubstr("there is none"));
}

TEST(TreeRouter, GivesUpAHostThatLostItsParentAfterSomeTime) {
  Sent sent;
  TreeRouter router(sent.sender());
  EXPECT_FALSE(router.Cut(5, "no tree yet", kTreeStart, seconds(6)));
  router.Form(PlanOf(7, {0}), 2);
  EXPECT_EQ(router.NextTick(), TimePoint::max());
  EXPECT_TRUE(router.Cut(5, "it broke", kTreeStart, seconds(6)));
  EXPECT_FALSE(router.Cut(5, "again", kTreeStart + seconds(1), seconds(6)))
      << "only the first counts";
  EXPECT_EQ(router.NextTick(), kTreeStart + seconds(6));
  EXPECT_THAT(router.PopOverdue(kTreeStart + seconds(5)), IsEmpty());
  const auto overdue = router.PopOverdue(kTreeStart + seconds(6));
  ASSERT_EQ(overdue.size(), 1U);
  EXPECT_EQ(overdue[0].first, 5U);
  EXPECT_THAT(overdue[0].second, HasSubstr("it broke; a --tree-radix"));
  EXPECT_THAT(router.PopOverdue(kTreeStart + seconds(9)), IsEmpty()) << "once";
  router.ToHost(5, {1, "key", "value"});
  router.Flush();
  EXPECT_THAT(sent.hosts, ElementsAre(4)) << "the driver goes on sending through the tree";
}

}  // namespace
}  // namespace hvd
