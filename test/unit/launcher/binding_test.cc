#include "launcher/binding.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

using Lists = std::vector<std::vector<int>>;

// Two nodes, two cores each, two hyper-threads a core; numbered as Linux does: all first threads, then all second ones.
const std::vector<Cpu> kTwoNodes = {{0, 0, 0, 0}, {1, 0, 0, 1}, {2, 1, 1, 0}, {3, 1, 1, 1},
                                    {4, 0, 0, 0}, {5, 0, 0, 1}, {6, 1, 1, 0}, {7, 1, 1, 1}};

TEST(BindRanks, CoresAreSharedOutWithTheirThreads) {
  EXPECT_EQ(BindRanks(BindTo::kCore, kTwoNodes, 4), (Lists{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(BindRanks(BindTo::kCore, kTwoNodes, 2), (Lists{{0, 1, 4, 5}, {2, 3, 6, 7}}));
  EXPECT_EQ(BindRanks(BindTo::kCore, kTwoNodes, 3), (Lists{{0, 4}, {1, 5}, {2, 3, 6, 7}}));
  EXPECT_EQ(BindRanks(BindTo::kCore, kTwoNodes, 1), (Lists{{0, 1, 2, 3, 4, 5, 6, 7}}));
}

TEST(BindRanks, MoreRanksThanCoresSplitThemThenShareThem) {
  EXPECT_EQ(BindRanks(BindTo::kCore, kTwoNodes, 8),
            (Lists{{0}, {4}, {1}, {5}, {2}, {6}, {3}, {7}}));
  EXPECT_EQ(BindRanks(BindTo::kCore, {{3, 0, 0, 3}, {9, 0, 0, 9}}, 5),
            (Lists{{3}, {3}, {3}, {9}, {9}}));
}

TEST(BindRanks, NodesTakeBlocksOfRanks) {
  EXPECT_EQ(BindRanks(BindTo::kNuma, kTwoNodes, 4),
            (Lists{{0, 1, 4, 5}, {0, 1, 4, 5}, {2, 3, 6, 7}, {2, 3, 6, 7}}));
  EXPECT_EQ(BindRanks(BindTo::kNuma, kTwoNodes, 1), (Lists{{0, 1, 4, 5}}));
}

TEST(BindRanks, NoneAndNothingKnownBindNobody) {
  EXPECT_EQ(BindRanks(BindTo::kNone, kTwoNodes, 2), (Lists{{}, {}}));
  EXPECT_EQ(BindRanks(BindTo::kCore, {}, 2), (Lists{{}, {}}));
}

TEST(CoreShares, RanksBoundAlikeShare) {
  EXPECT_EQ(CoreShares({{0, 1, 4, 5}, {0, 1, 4, 5}, {2, 3}}), (std::vector<uint32_t>{2, 2, 2}));
  EXPECT_EQ(CoreShares({{3}, {3}, {}}), (std::vector<uint32_t>{1, 1, 0}));
}

TEST(CpuList, ReadsAndWritesWhatTheKernelDoes) {
  EXPECT_EQ(ParseCpuList("0-2,8,10-11"), (std::vector<int>{0, 1, 2, 8, 10, 11}));
  EXPECT_EQ(CpuListText({11, 0, 2, 1, 8, 10}), "0-2,8,10-11");
  EXPECT_EQ(CpuListText({}), "");
  for (const char* wrong : {"", "x", "1-", "3-1", "1;2", "-1", "0-99999999999"})
    EXPECT_TRUE(ParseCpuList(wrong).empty()) << wrong;
}

TEST(PartOfCpus, AgentsOfOneMachineShareThem) {
  std::vector<Cpu> cpus;
  for (int i = 0; i < 5; ++i) cpus.push_back({i, 0, 0, i});
  auto numbers = [&](uint32_t part, uint32_t parts) {
    std::vector<int> list;
    for (const Cpu& cpu : PartOfCpus(cpus, part, parts)) list.push_back(cpu.number);
    return list;
  };
  using List = std::vector<int>;
  EXPECT_EQ(numbers(0, 1), (List{0, 1, 2, 3, 4}));
  EXPECT_EQ(numbers(0, 2), (List{0, 1}));
  EXPECT_EQ(numbers(1, 2), (List{2, 3, 4}));
  EXPECT_EQ(numbers(4, 5), (List{4}));
  EXPECT_EQ(numbers(6, 7), (List{1})) << "more agents than cores";
}

TEST(AllowedCpus, AreSome) { EXPECT_FALSE(AllowedCpus().empty()); }

}  // namespace
}  // namespace hvd
