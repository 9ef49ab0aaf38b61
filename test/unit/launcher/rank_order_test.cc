#include "launcher/job/policy/rank_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace hvd {
namespace {

using testing::ElementsAre;

std::vector<uint32_t> WorkersOf(const Generation& generation) {
  std::vector<uint32_t> workers;
  for (const Member& member : generation.members) workers.push_back(member.worker);
  return workers;
}

TEST(ArrangeRanks, FillsHostsInTheirOrderAtFirst) {
  const Generation world = ArrangeRanks({{3, 1, 0, {}}, {0, 0, 0, {}}, {1, 0, 1, {}}});
  EXPECT_THAT(WorkersOf(world), ElementsAre(0, 1, 3));
  EXPECT_EQ(world.members[1].place, (Placement{1, 0, 1, 2, 0, 1}));
  EXPECT_EQ(world.members[2].place, (Placement{2, 1, 0, 1, 1, 2}));
  EXPECT_FALSE(world.homogeneous);
}

TEST(ArrangeRanks, ANewWorkerTakesThePlaceOfTheOneBeforeIt) {
  EXPECT_THAT(WorkersOf(ArrangeRanks({{0, 0, 0, 0}, {2, 0, 2, 1}, {7, 0, 1, {}}})),
              ElementsAre(0, 7, 2));
}

TEST(ArrangeRanks, RankZeroIsASurvivorWhereverThereIsOne) {
  EXPECT_THAT(WorkersOf(ArrangeRanks({{9, 0, 0, {}}, {1, 0, 1, 1}, {2, 0, 2, 2}})),
              ElementsAre(1, 2, 9));
  EXPECT_THAT(WorkersOf(ArrangeRanks({{9, 0, 0, {}}, {2, 1, 0, 2}, {3, 1, 1, 3}})),
              ElementsAre(2, 3, 9));
}

// Workers 8 and 9 came in generation 4, the last one, and may not have been told the state.
TEST(ArrangeRanks, RankZeroCameFirstOfAll) {
  EXPECT_THAT(WorkersOf(ArrangeRanks({{8, 0, 0, 1, 4}, {2, 0, 1, 2, 1}, {3, 0, 2, 3, 1}})),
              ElementsAre(2, 3, 8));
  EXPECT_THAT(WorkersOf(ArrangeRanks({{8, 0, 0, 1, 4}, {9, 0, 1, 2, 4}, {3, 1, 0, 3, 2}})),
              ElementsAre(3, 8, 9));
  EXPECT_THAT(WorkersOf(ArrangeRanks({{2, 0, 1, 1, 1}, {8, 0, 0, 2, 4}, {3, 1, 0, 3, 1}})),
              ElementsAre(2, 8, 3));
}

TEST(ArrangeRanks, HostsWithoutASurvivorFollow) {
  const Generation world = ArrangeRanks({{5, 0, 0, {}}, {2, 1, 0, 1}, {6, 2, 0, {}}});
  EXPECT_THAT(WorkersOf(world), ElementsAre(2, 5, 6));
  EXPECT_THAT(world.Layout(), ElementsAre(RankRun{0, 0, 1, 3}));
}

// Any mixture: every candidate has one rank, the numbers fit together, survivors of a host keep
// their order, and the layout is one that the runtime takes.
TEST(ArrangeRanks, HoldsForRandomMixtures) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Candidate> candidates;
    const uint32_t count = 1 + random() % 12;
    for (uint32_t i = 0; i < count; ++i) {
      Candidate candidate{i, static_cast<uint32_t>(random() % 4), i, {}};
      if (random() % 2 == 0) candidate.last_rank = i;
      candidate.since = random() % 3;
      candidates.push_back(candidate);
    }
    std::shuffle(candidates.begin(), candidates.end(), random);
    const bool survivors =
        std::ranges::any_of(candidates, [](const Candidate& c) { return c.last_rank.has_value(); });
    const Generation world = ArrangeRanks(candidates);
    ASSERT_EQ(world.size(), count);
    std::set<uint32_t> seen;
    for (uint32_t rank = 0; rank < count; ++rank) {
      const Member& member = world.members[rank];
      EXPECT_EQ(member.place.rank, rank);
      EXPECT_LT(member.place.local_rank, member.place.local_size);
      EXPECT_LT(member.place.cross_rank, member.place.cross_size);
      EXPECT_TRUE(seen.insert(member.worker).second);
    }
    const auto first = std::ranges::find(candidates, world.members[0].worker, &Candidate::worker);
    EXPECT_EQ(first->last_rank.has_value(), survivors);
    EXPECT_TRUE(!survivors || std::ranges::none_of(candidates, [&](const Candidate& c) {
      return c.last_rank.has_value() && c.since < first->since;
    }));
    EXPECT_TRUE(PlacesOf(world.Layout(), count).ok());
  }
}

}  // namespace
}  // namespace hvd
