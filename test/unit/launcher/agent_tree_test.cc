// Parents and children in the tree, and the work of a host of the tree on messages that pass
// through it.
#include "launcher/overlay/tree/agent_tree.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "runtime/net/kv_store.h"
#include "test/fakes/host_of_rank.h"

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

// One rank on each host, of its number.
HostOfRank OneEach(uint32_t hosts) {
  std::vector<uint32_t> host_of_rank(hosts);
  std::iota(host_of_rank.begin(), host_of_rank.end(), 0);
  return ByRank(host_of_rank);
}

TEST(TreeRoot, SpeaksToAllAndToOneThroughItsChildren) {
  TreeRoot root(100, 4, OneEach(100));
  root.ToAll(BeginGeneration{1});
  auto all = root.PopDownward();
  EXPECT_EQ(all.size(), 4U);
  EXPECT_EQ(HostsOf(all).size(), 100U);
  root.ToOne(30, BeginGeneration{1});
  auto one = root.PopDownward();
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].first, 25U);
  EXPECT_EQ(HostsOf(one), std::set<uint32_t>{30});
}

TEST(TreeRoot, WithFewHostsThereIsNoTree) {
  TreeRoot root(4, 4, OneEach(4));
  EXPECT_TRUE(root.flat());
  root.ToAll(BeginGeneration{1});
  EXPECT_EQ(root.PopDownward().size(), 4U);
  EXPECT_FALSE(root.PlaceOf(3).parent);
}

TEST(TreeRoot, IsAtMostFourWide) {
  TreeRoot root(33, 32, OneEach(33));
  EXPECT_FALSE(root.flat());
  EXPECT_EQ(root.width(), kWidestTree);
  root.ToAll(BeginGeneration{1});
  EXPECT_EQ(root.PopDownward().size(), kWidestTree);
  for (uint32_t host = 0; host < 33; ++host)
    EXPECT_LE(root.PlaceOf(host).below.size(), kWidestTree) << host;
  EXPECT_EQ(TreeRoot(33, 3, OneEach(33)).width(), 3U);
}

TreeUp Batch(uint32_t host, const ToDriver& message) {
  TreeUp batch;
  batch.entries.push_back({host, EncodeToDriver(message)});
  return batch;
}

TEST(TreeRoot, NobodySpeaksForHostsThatAreNotBelowIt) {
  TreeRoot root(100, 4, OneEach(100));
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
  // Of seven hosts in twos: 0 has 1 and 3 below it, 1 has 2. Ranks 0, 1 and 7 are on host 0, 2, 3
  // and 9 on 1, 4 and 5 on 2, 6 on 3, 8 on 4.
  const HostOfRank host_of_rank_ = ByRank({0, 0, 1, 1, 2, 2, 3, 0, 4, 1});
  TreeNode node_{0, PlaceInTree(0, 7, 2), host_of_rank_};

  void Begin(uint64_t generation) {
    ASSERT_TRUE(node_.FromAbove(Down(0, 4, BeginGeneration{generation})).ok());
    (void)node_.PopDownward();
    (void)node_.PopOwn();
  }
};

TEST_F(Node, WhatGoesUpIsGatheredInOrder) {
  node_.FromSelf(WorkerStarted{0, 10});
  ASSERT_TRUE(node_.FromBelow(1, Batch(2, WorkerStarted{4, 12})).ok());
  node_.FromSelf(RankJoined{0});
  TreeUp up = node_.PopUpward();
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
  TreeUp up = node_.PopUpward();
  ASSERT_EQ(up.entries.size(), 1U);
  EXPECT_EQ(up.entries[0].message, EncodeToDriver(RanksJoined{{{0, 6}, {7, 1}, {9, 1}}}));
}

TEST_F(Node, WhatARankDoesStaysInOrder) {
  node_.FromSelf(RankJoined{0});
  node_.FromSelf(RankLost{0, 1, 0, 5, "gone", ""});
  TreeUp up = node_.PopUpward();
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
  ASSERT_TRUE(node_.FromAbove(Down(2, 3, BeginGeneration{1})).ok());
  auto down = node_.PopDownward();
  ASSERT_EQ(down.size(), 1U);
  EXPECT_EQ(down[0].first, 1U) << "host 2 is below host 1";
  EXPECT_TRUE(node_.PopOwn().empty());
  ASSERT_TRUE(node_.FromAbove(Down(0, 4, BeginGeneration{1})).ok());
  EXPECT_EQ(HostsOf(node_.PopDownward()), (std::set<uint32_t>{1, 2, 3}));
  EXPECT_EQ(node_.PopOwn().size(), 1U);
}

TEST_F(Node, WhatTwoHostsBelowAskOfEachOtherGoesNoFurther) {
  Begin(1);
  ASSERT_TRUE(node_.FromBelow(1, Batch(2, PutKey{1, "address.2", "here"})).ok());
  (void)node_.PopUpward();
  ASSERT_TRUE(node_.FromBelow(3, Batch(3, WantKey{1, "address.2"})).ok());
  EXPECT_FALSE(node_.has_up());
  auto down = node_.PopDownward();
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
  TreeUp up = node_.PopUpward();
  ASSERT_EQ(up.entries.size(), 1U);
  EXPECT_EQ(up.entries[0].host, 0U) << "the answer comes to the one that asked";
  ASSERT_TRUE(node_.FromAbove(Down(0, 1, KeyValue{1, "address.6", "there"})).ok());
  EXPECT_EQ(HostsOf(node_.PopDownward()), (std::set<uint32_t>{1, 3}));
  EXPECT_EQ(node_.PopOwn().size(), 1U);
}

TEST_F(Node, EntriesOfAnotherGenerationAreForgotten) {
  Begin(1);
  node_.FromSelf(PutKey{1, "address.0", "old"});
  Begin(2);
  (void)node_.PopUpward();
  node_.FromSelf(WantKey{2, "address.0"});
  EXPECT_TRUE(node_.has_up());
  EXPECT_TRUE(node_.PopOwn().empty());
}

TEST_F(Node, AChildThatLiesIsFoundOut) {
  EXPECT_FALSE(node_.FromBelow(1, Batch(3, RankJoined{6})).ok());
  EXPECT_FALSE(node_.FromBelow(2, Batch(2, RankJoined{4})).ok()) << "no child of host 0";
  TreeUp damaged;
  damaged.entries.push_back({1, "\x7f"});
  EXPECT_FALSE(node_.FromBelow(1, damaged).ok());
  EXPECT_FALSE(node_.FromAbove(Down(0, 4, TreeDown{})).ok());
}

// Calls `visit` with an empty message of each kind.
template <typename Variant, size_t I = 0, typename SideCommand>
void ForEachKind(SideCommand side_command) {
  if constexpr (I < std::variant_size_v<Variant>) {
    side_command(Variant(std::variant_alternative_t<I, Variant>{}));
    ForEachKind<Variant, I + 1>(side_command);
  }
}

template <typename... Kinds, typename Variant>
bool IsOneOf(const Variant& message) {
  return (std::holds_alternative<Kinds>(message) || ...);
}

TEST_F(Node, OnlyThreeKindsOfMessagesGoDown) {
  Begin(1);
  ForEachKind<ToAgent>([&](ToAgent message) {
    if (auto* value = std::get_if<KeyValue>(&message)) *value = {1, "key", "value"};
    const bool may = IsOneOf<BeginGeneration, KeyValue, Resend>(message);
    EXPECT_EQ(node_.FromAbove(Down(0, 4, message)).ok(), may) << "kind " << message.index();
    EXPECT_TRUE(node_.PopDownward().empty() || may) << "kind " << message.index();
    EXPECT_TRUE(node_.PopOwn().empty() || may) << "kind " << message.index();
  });
}

TEST_F(Node, OnlyWhatRanksAndWorkersDoGoesUp) {
  Begin(1);
  ForEachKind<ToDriver>([&](ToDriver message) {
    std::visit(
        [](auto& m) {
          if constexpr (requires { m.rank; }) m.rank = 2;
          if constexpr (requires { m.key; }) m.key = "key";
          if constexpr (requires { m.generation; }) m.generation = 1;
          if constexpr (requires { m.spans; }) m.spans = {{2, 1}};
        },
        message);
    const bool may = IsOneOf<WorkerStarted, WorkerNotStarted, RankJoined, RanksJoined, RankLeft,
                             RankLost, WorkerExited, PutKey, WantKey>(message);
    EXPECT_EQ(node_.FromBelow(1, Batch(1, message)).ok(), may) << "kind " << message.index();
    TreeRoot root(7, 2, host_of_rank_);
    EXPECT_EQ(root.Open(0, Batch(1, message)).ok(), may) << "kind " << message.index();
    EXPECT_TRUE(may || !node_.has_up()) << "kind " << message.index();
    (void)node_.PopUpward();
  });
  EXPECT_FALSE(node_.FromBelow(1, Batch(1, PutKey{0, "key", "value"})).ok()) << "of the proof";
}

TEST_F(Node, AHostSpeaksOfItsOwnRanksAlone) {
  constexpr uint32_t kNoRank = 10;
  for (uint32_t rank : {0u, 2u, 5u, 6u, 8u, kNoRank, ~0u}) {
    const bool own = rank == 2;    // host 1 speaks for itself
    const bool below = rank == 5;  // its child has it
    const bool block = own || below;
    const std::vector<ToDriver> single = {WorkerStarted{rank, 1},
                                          WorkerNotStarted{rank, 2, "no"},
                                          RankJoined{rank},
                                          RankLeft{rank, 1, 1},
                                          RankLost{rank, 1, 1, 1, "gone"},
                                          WorkerExited{rank, 1, {true, 9}},
                                          PutKey{1, "mesh." + std::to_string(rank), "here"}};
    for (const ToDriver& message : single) {
      EXPECT_EQ(node_.FromBelow(1, Batch(1, message)).ok(), own) << rank << " " << message.index();
      EXPECT_EQ(node_.FromBelow(1, Batch(2, message)).ok(), below)
          << rank << " " << message.index();
    }
    EXPECT_EQ(node_.FromBelow(1, Batch(1, RanksJoined{{{rank, 1}}})).ok(), block) << rank;
  }
  EXPECT_TRUE(node_.FromBelow(1, Batch(1, WantKey{1, "mesh.8"})).ok()) << "anybody may ask";
}

TEST_F(Node, GatheredRanksAreThoseOfTheBlock) {
  EXPECT_TRUE(node_.FromBelow(1, Batch(1, RanksJoined{{{2, 4}, {9, 1}}})).ok());
  for (const RanksJoined& bad :
       {RanksJoined{{{2, 5}}}, RanksJoined{{{1, 2}}}, RanksJoined{{{2, 0}}}, RanksJoined{{{9, 2}}},
        RanksJoined{{{~0u, 2}}}, RanksJoined{{{2, ~0u}}}, RanksJoined{{{2, 4}, {2, 4}, {2, 4}}}}) {
    EXPECT_FALSE(node_.FromBelow(1, Batch(1, bad)).ok())
        << bad.spans[0].first << " " << bad.spans[0].count;
  }
}

TEST_F(Node, WhatAHostSaysTwiceIsGatheredOnce) {
  ASSERT_TRUE(node_.FromBelow(1, Batch(1, RanksJoined{{{2, 4}}})).ok());
  ASSERT_TRUE(node_.FromBelow(1, Batch(1, RanksJoined{{{2, 1}}})).ok());
  ASSERT_TRUE(node_.FromBelow(1, Batch(1, RanksJoined{{{3, 1}, {9, 1}}})).ok());
  EXPECT_EQ(node_.PopUpward().entries.at(0).message, EncodeToDriver(RanksJoined{{{2, 4}, {9, 1}}}));
}

TEST_F(Node, NothingOfABadBatchIsPassedOn) {
  TreeUp batch = Batch(1, WorkerStarted{2, 12});
  batch.entries.push_back({1, EncodeToDriver(WorkerStarted{6, 13})});
  EXPECT_FALSE(node_.FromBelow(1, batch).ok());
  EXPECT_FALSE(node_.has_up());
  TreeDown down = Down(0, 4, BeginGeneration{1});
  down.entries.push_back({0, 4, EncodeToAgent(SignalWorkers{9})});
  EXPECT_FALSE(node_.FromAbove(down).ok());
  EXPECT_TRUE(node_.PopDownward().empty());
  EXPECT_TRUE(node_.PopOwn().empty());
}

TEST_F(Node, FromAboveComesWhatIsForThisPartOfTheTree) {
  TreeNode node(1, PlaceInTree(1, 7, 2), host_of_rank_);  // hosts 1 and 2
  const std::vector<std::pair<TreeBlock, bool>> table = {
      {{1, 3}, true},  {{1, 2}, true},  {{2, 3}, true},  {{0, 3}, false}, {{1, 4}, false},
      {{0, 1}, false}, {{3, 4}, false}, {{2, 2}, false}, {{3, 1}, false}, {{1, ~0u}, false}};
  for (const auto& [hosts, may] : table) {
    EXPECT_EQ(node.FromAbove(Down(hosts.root, hosts.end, BeginGeneration{1})).ok(), may)
        << hosts.root << " " << hosts.end;
  }
}

TEST_F(Node, EntriesOfTheDirectoryAreBounded) {
  Begin(1);
  const std::string long_key(kMaxKvKey + 1, 'k'), long_value(kMaxKvValue + 1, 'v');
  EXPECT_FALSE(node_.FromBelow(1, Batch(1, PutKey{1, long_key, "v"})).ok());
  EXPECT_FALSE(node_.FromBelow(1, Batch(1, PutKey{1, "two words", "v"})).ok());
  EXPECT_FALSE(node_.FromBelow(1, Batch(1, PutKey{1, "key", long_value})).ok());
  EXPECT_FALSE(node_.FromBelow(1, Batch(1, WantKey{1, long_key})).ok());
  EXPECT_FALSE(node_.FromAbove(Down(0, 1, KeyValue{1, "key", long_value})).ok());
  EXPECT_FALSE(node_.FromAbove(Down(0, 1, KeyValue{1, "", "v"})).ok());
  // A host that names ever more keys is stopped; another one goes on.
  uint64_t named = 0;
  while (named < 100'000 &&
         node_.FromBelow(3, Batch(3, WantKey{1, "key." + std::to_string(named)})).ok())
    ++named;
  EXPECT_EQ(named, MostKeys({3, 4}, host_of_rank_));
  EXPECT_TRUE(node_.FromBelow(3, Batch(3, WantKey{1, "key.0"})).ok()) << "known already";
  EXPECT_TRUE(node_.FromBelow(1, Batch(1, WantKey{1, "another"})).ok());
  Begin(2);
  EXPECT_TRUE(node_.FromBelow(3, Batch(3, WantKey{2, "another"})).ok()) << "another generation";
}

TEST_F(Node, AValueThatNobodyAskedForIsNotKept) {
  Begin(1);
  ASSERT_TRUE(node_.FromAbove(Down(0, 1, KeyValue{1, "mesh.8", "false"})).ok());
  node_.FromSelf(WantKey{1, "mesh.8"});
  EXPECT_TRUE(node_.has_up());
  EXPECT_TRUE(node_.PopOwn().empty());
}

TEST(CheckSpeaker, BeforeItHasRanksAHostSpeaksOfNone) {
  EXPECT_FALSE(CheckSpeaker(RankJoined{0}, {}, {}).ok());
  EXPECT_FALSE(CheckSpeaker(RanksJoined{{{0, 1}}}, {}, {}).ok());
  EXPECT_TRUE(CheckSpeaker(AgentReady{}, {}, {}).ok());
  EXPECT_TRUE(CheckSpeaker(PutKey{0, "reach.1", "record"}, {}, {}).ok());
  EXPECT_TRUE(CheckSpeaker(RelayOpen{1, 2, 3}, {}, {}).ok()) << "that rank is on the other host";
  EXPECT_FALSE(CheckSpeaker(RelayData{1, std::string(kRelayPiece + 1, 'x')}, {}, {}).ok());
}

}  // namespace
}  // namespace hvd
