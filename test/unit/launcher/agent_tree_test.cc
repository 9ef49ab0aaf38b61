// Who is above and below whom, and what a host of the tree does with what passes through it.
#include "launcher/agent_tree.h"

#include <gtest/gtest.h>

#include <set>

namespace hvd {
namespace {

TEST(TreeBlocks, CutsIntoNeighboursOfNearlyEqualNumber) {
  EXPECT_EQ(TreeBlocks(0, 7, 2), (std::vector<TreeBlock>{{0, 4}, {4, 7}}));
  EXPECT_EQ(TreeBlocks(1, 4, 2), (std::vector<TreeBlock>{{1, 3}, {3, 4}}));
  EXPECT_EQ(TreeBlocks(5, 5, 2), (std::vector<TreeBlock>{}));
  EXPECT_EQ(TreeBlocks(0, 3, 0), (std::vector<TreeBlock>{{0, 1}, {1, 2}, {2, 3}}));
}

TEST(PlaceInTree, EveryHostHasOneParentAndTheDepthIsThatOfALogarithm) {
  for (uint32_t hosts : {1u, 2u, 31u, 32u, 33u, 1024u, 10'000u}) {
    for (uint32_t radix : {2u, 5u, 32u}) {
      std::vector<uint32_t> depth(hosts);
      uint32_t deepest = 0;
      size_t most_below = 0;
      for (uint32_t host = 0; host < hosts; ++host) {
        const TreePlace place = PlaceInTree(host, hosts, radix);
        EXPECT_EQ(place.block.root, host);
        most_below = std::max(most_below, place.below.size());
        if (!place.parent) continue;
        ASSERT_LT(*place.parent, host);
        depth[host] = depth[*place.parent] + 1;
        deepest = std::max(deepest, depth[host]);
        const TreePlace above = PlaceInTree(*place.parent, hosts, radix);
        EXPECT_NE(std::find(above.below.begin(), above.below.end(), place.block),
                  above.below.end());
      }
      EXPECT_LE(most_below, radix);
      uint32_t levels = 1;
      for (uint64_t reach = radix; reach < hosts; reach *= radix) ++levels;
      EXPECT_LE(deepest, levels) << hosts << " hosts, radix " << radix;
    }
  }
}

std::set<uint32_t> HostsOf(const std::vector<std::pair<uint32_t, TreeDown>>& parts) {
  std::set<uint32_t> hosts;
  for (const auto& [child, part] : parts) {
    for (const TreeDownEntry& entry : part.entries) {
      for (uint32_t host = entry.first; host < entry.end; ++host)
        EXPECT_TRUE(hosts.insert(host).second);
    }
  }
  return hosts;
}

TEST(TreeRoot, SpeaksToAllAndToOneThroughItsChildren) {
  TreeRoot root(100, 4);
  root.ToAll(BeginEpoch{1});
  auto all = root.TakeDown();
  EXPECT_EQ(all.size(), 4U);
  EXPECT_EQ(HostsOf(all).size(), 100U);
  root.ToOne(30, BeginEpoch{1});
  auto one = root.TakeDown();
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].first, 25U);
  EXPECT_EQ(HostsOf(one), std::set<uint32_t>{30});
}

TEST(TreeRoot, WithFewHostsThereIsNoTree) {
  TreeRoot root(4, 4);
  EXPECT_TRUE(root.flat());
  root.ToAll(BeginEpoch{1});
  EXPECT_EQ(root.TakeDown().size(), 4U);
  EXPECT_FALSE(root.PlaceOf(3).parent);
}

TreeUp Batch(uint32_t host, const ToDriver& message) {
  TreeUp batch;
  batch.entries.push_back({host, EncodeToDriver(message)});
  return batch;
}

TEST(TreeRoot, NobodySpeaksForHostsThatAreNotBelowIt) {
  TreeRoot root(100, 4);
  EXPECT_TRUE(root.Open(25, Batch(49, RankJoined{49})).ok());
  EXPECT_FALSE(root.Open(25, Batch(50, RankJoined{50})).ok());
  EXPECT_FALSE(root.Open(26, Batch(26, RankJoined{26})).ok()) << "it has to go through host 25";
  EXPECT_FALSE(root.Open(25, Batch(25, AgentGone{})).ok()) << "that goes straight";
  EXPECT_TRUE(root.Cut(26));
  EXPECT_FALSE(root.Cut(26));
  EXPECT_TRUE(root.Open(26, Batch(26, RankJoined{26})).ok()) << "it lost its parent";
}

TreeDown Down(uint32_t first, uint32_t end, const ToAgent& message) {
  return {{{first, end, EncodeToAgent(message)}}};
}

class Node : public testing::Test {
 protected:
  // Of seven hosts in twos: 0 has 1 and 3 below it, 1 has 2.
  TreeNode node_{0, PlaceInTree(0, 7, 2)};

  void Begin(uint64_t epoch) {
    ASSERT_TRUE(node_.FromAbove(Down(0, 4, BeginEpoch{epoch})).ok());
    (void)node_.TakeDown();
    (void)node_.TakeOwn();
  }
};

TEST_F(Node, WhatGoesUpIsGatheredInOrder) {
  node_.FromSelf(WorkerStarted{0, 10});
  ASSERT_TRUE(node_.FromBelow(1, Batch(2, WorkerStarted{2, 12})).ok());
  node_.FromSelf(RankJoined{0});
  TreeUp up = node_.TakeUp();
  ASSERT_EQ(up.entries.size(), 3U);
  EXPECT_EQ(up.entries[0].host, 0U);
  EXPECT_EQ(up.entries[1].host, 2U);
  EXPECT_EQ(up.entries[2].message, EncodeToDriver(RanksJoined{{{0, 1}}}));
  EXPECT_FALSE(node_.has_up());
}

TEST_F(Node, RanksThatJoinBecomeOneMessage) {
  node_.FromSelf(RankJoined{1});
  node_.FromSelf(RankJoined{0});
  ASSERT_TRUE(node_.FromBelow(1, Batch(1, RanksJoined{{{2, 4}, {9, 1}}})).ok());
  node_.FromSelf(RankJoined{7});
  TreeUp up = node_.TakeUp();
  ASSERT_EQ(up.entries.size(), 1U);
  EXPECT_EQ(up.entries[0].message, EncodeToDriver(RanksJoined{{{0, 6}, {7, 1}, {9, 1}}}));
}

TEST_F(Node, WhatARankDoesStaysInOrder) {
  node_.FromSelf(RankJoined{0});
  node_.FromSelf(RankLost{0, 1, 0, 5, "gone", ""});
  TreeUp up = node_.TakeUp();
  ASSERT_EQ(up.entries.size(), 2U);
  EXPECT_EQ(up.entries[0].message, EncodeToDriver(RanksJoined{{{0, 1}}}));
}

TEST(ForEachRank, StaysBelowTheNumberOfRanks) {
  std::vector<uint32_t> ranks;
  ForEachRank({{{1, 2}, {6, ~uint32_t{0}}}}, 8,
              [&](RankJoined joined) { ranks.push_back(joined.rank); });
  EXPECT_EQ(ranks, (std::vector<uint32_t>{1, 2, 6, 7}));
}

TEST_F(Node, AMessageForSomeGoesToThoseAlone) {
  ASSERT_TRUE(node_.FromAbove(Down(2, 3, BeginEpoch{1})).ok());
  auto down = node_.TakeDown();
  ASSERT_EQ(down.size(), 1U);
  EXPECT_EQ(down[0].first, 1U) << "host 2 is below host 1";
  EXPECT_TRUE(node_.TakeOwn().empty());
  ASSERT_TRUE(node_.FromAbove(Down(0, 4, BeginEpoch{1})).ok());
  EXPECT_EQ(HostsOf(node_.TakeDown()), (std::set<uint32_t>{1, 2, 3}));
  EXPECT_EQ(node_.TakeOwn().size(), 1U);
}

TEST_F(Node, WhatTwoHostsBelowAskOfEachOtherGoesNoFurther) {
  Begin(1);
  ASSERT_TRUE(node_.FromBelow(1, Batch(2, PutKey{1, "address.2", "here"})).ok());
  (void)node_.TakeUp();
  ASSERT_TRUE(node_.FromBelow(3, Batch(3, WantKey{1, "address.2"})).ok());
  EXPECT_FALSE(node_.has_up());
  auto down = node_.TakeDown();
  ASSERT_EQ(down.size(), 1U);
  EXPECT_EQ(down[0].first, 3U);
  ASSERT_EQ(down[0].second.entries.size(), 1U);
  EXPECT_EQ(down[0].second.entries[0].message, EncodeToAgent(KeyValue{1, "address.2", "here"}));
}

TEST_F(Node, AKeyIsAskedForOnceAndGivenToAllWhoWait) {
  Begin(1);
  ASSERT_TRUE(node_.FromBelow(1, Batch(1, WantKey{1, "address.6"})).ok());
  ASSERT_TRUE(node_.FromBelow(3, Batch(3, WantKey{1, "address.6"})).ok());
  node_.FromSelf(WantKey{1, "address.6"});
  TreeUp up = node_.TakeUp();
  ASSERT_EQ(up.entries.size(), 1U);
  EXPECT_EQ(up.entries[0].host, 0U) << "the answer comes to the one that asked";
  ASSERT_TRUE(node_.FromAbove(Down(0, 1, KeyValue{1, "address.6", "there"})).ok());
  EXPECT_EQ(HostsOf(node_.TakeDown()), (std::set<uint32_t>{1, 3}));
  EXPECT_EQ(node_.TakeOwn().size(), 1U);
}

TEST_F(Node, EntriesOfAnotherEpochAreForgotten) {
  Begin(1);
  node_.FromSelf(PutKey{1, "address.0", "old"});
  Begin(2);
  (void)node_.TakeUp();
  node_.FromSelf(WantKey{2, "address.0"});
  EXPECT_TRUE(node_.has_up());
  EXPECT_TRUE(node_.TakeOwn().empty());
}

TEST_F(Node, AChildThatLiesIsFoundOut) {
  EXPECT_FALSE(node_.FromBelow(1, Batch(3, RankJoined{3})).ok());
  EXPECT_FALSE(node_.FromBelow(2, Batch(2, RankJoined{2})).ok()) << "no child of host 0";
  TreeUp damaged;
  damaged.entries.push_back({1, "\x7f"});
  EXPECT_FALSE(node_.FromBelow(1, damaged).ok());
  EXPECT_FALSE(node_.FromAbove(Down(0, 4, TreeDown{})).ok());
}

}  // namespace
}  // namespace hvd
