#include "launcher/agent/workers/binding.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "launcher/agent/workers/worker_gpus.h"

namespace hvd {
namespace {

using Lists = std::vector<std::vector<int>>;

// Two nodes, two cores each, two hyper-threads a core; numbered as Linux does: all first threads,
// then all second ones.
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

TEST(BindRanks, ARankIsBesideItsGpu) {
  EXPECT_EQ(BindRanks(BindTo::kGpu, kTwoNodes, 3, {1, 0}),
            (Lists{{2, 3, 6, 7}, {0, 1, 4, 5}, {2, 3, 6, 7}}));
  EXPECT_EQ(BindRanks(BindTo::kGpu, kTwoNodes, 2, {-1, 0}), (Lists{{}, {0, 1, 4, 5}}));
  EXPECT_EQ(BindRanks(BindTo::kGpu, kTwoNodes, 2, {}), (Lists{{}, {}})) << "there is no GPU";
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

TEST(PartOfMachine, AgentsOfOneMachineShareThem) {
  std::vector<Cpu> cpus;
  for (int i = 0; i < 5; ++i) cpus.push_back({i, 0, 0, i});
  auto numbers = [&](uint32_t part, uint32_t parts) {
    std::vector<int> list;
    for (const Cpu& cpu : PartOfMachine(cpus, part, parts)) list.push_back(cpu.number);
    return list;
  };
  using List = std::vector<int>;
  EXPECT_EQ(numbers(0, 1), (List{0, 1, 2, 3, 4}));
  EXPECT_EQ(numbers(0, 2), (List{0, 1}));
  EXPECT_EQ(numbers(1, 2), (List{2, 3, 4}));
  EXPECT_EQ(numbers(4, 5), (List{4}));
  EXPECT_EQ(numbers(6, 7), (List{1})) << "more agents than cores";
}

// A machine of two sockets with eight cores of two threads each, as the kernel shows it: CPUs 0-7
// and 16-23 are on the first, each core's second thread is 16 above its first.
class TwoSockets : public testing::Test {
 protected:
  TwoSockets() {
    char name[] = "/tmp/binding_test.XXXXXX";
    sys_ = ::mkdtemp(name);
    for (int cpu = 0; cpu < 32; ++cpu) {
      std::string topology = "/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology";
      Write(topology, "physical_package_id", std::to_string(cpu % 16 / 8));
      Write(topology, "core_id", std::to_string(cpu % 8));
    }
    Write("/devices/system/node/node0", "cpulist", "0-7,16-23");
    Write("/devices/system/node/node1", "cpulist", "8-15,24-31");
    Write("/devices/system/node/power", "control", "auto");
  }
  ~TwoSockets() override { std::filesystem::remove_all(sys_); }

  void Write(const std::string& folder, const std::string& name, const std::string& text) {
    std::filesystem::create_directories(sys_ + folder);
    std::ofstream(sys_ + folder + "/" + name) << text << "\n";
  }

  // "0: 0-1,16-17" a line.
  std::string Mapping(BindTo bind_to, const std::string& allowed, uint32_t ranks) {
    std::string text;
    uint32_t rank = 0;
    for (const auto& cpus : BindRanks(bind_to, DescribeCpus(ParseCpuList(allowed), sys_), ranks))
      text += std::to_string(rank++) + ": " + CpuListText(cpus) + "\n";
    return text;
  }

  std::string sys_;
};

TEST_F(TwoSockets, EightRanksByCore) {
  EXPECT_EQ(Mapping(BindTo::kCore, "0-31", 8),
            "0: 0-1,16-17\n1: 2-3,18-19\n2: 4-5,20-21\n3: 6-7,22-23\n"
            "4: 8-9,24-25\n5: 10-11,26-27\n6: 12-13,28-29\n7: 14-15,30-31\n");
}

TEST_F(TwoSockets, EightRanksByNode) {
  const std::string first = "0-7,16-23\n", second = "8-15,24-31\n";
  EXPECT_EQ(Mapping(BindTo::kNuma, "0-31", 8), "0: " + first + "1: " + first + "2: " + first +
                                                   "3: " + first + "4: " + second + "5: " + second +
                                                   "6: " + second + "7: " + second);
}

TEST_F(TwoSockets, AMaskThatWasInheritedIsTheFrame) {
  EXPECT_EQ(Mapping(BindTo::kCore, "6-9", 2), "0: 6-7\n1: 8-9\n");
  EXPECT_EQ(Mapping(BindTo::kCore, "4,20,12,28", 2), "0: 4,20\n1: 12,28\n");
  EXPECT_EQ(Mapping(BindTo::kNuma, "7-9", 2), "0: 7\n1: 8-9\n");
}

TEST_F(TwoSockets, CpusThatTheKernelDoesNotDescribeAreCores) {
  EXPECT_EQ(Mapping(BindTo::kCore, "40-43", 2), "0: 40-41\n1: 42-43\n");
}

TEST(AllowedCpus, AreSome) { EXPECT_FALSE(AllowedCpus().empty()); }

}  // namespace
}  // namespace hvd
