// Which GPU each rank of a host has.
#include "launcher/agent/gpu/gpu_assignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/agent/workers/worker_gpus.h"

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<GpuDevice> kFour = {{"0000:17:00.0", "GPU-aa11", 0},
                                      {"0000:65:00.0", "GPU-ab22", 0},
                                      {"0000:b3:00.0", "GPU-cc33", 1},
                                      {"0000:e3:00.0", "GPU-dd44", -1}};

TEST(VisibleGpus, AreAllUnlessTheVariableLeavesSome) {
  EXPECT_THAT(VisibleGpus(std::nullopt, kFour), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(VisibleGpus("2, 0", kFour), ElementsAre("2", "0"));
  EXPECT_THAT(VisibleGpus("1,-1,2", kFour), ElementsAre("1")) << "as CUDA reads it";
  EXPECT_THAT(VisibleGpus("", kFour), IsEmpty());
  EXPECT_THAT(VisibleGpus("MIG-7,GPU-aa", {}), ElementsAre("MIG-7", "GPU-aa"));
}

TEST(NodesOfGpus, FollowNumbersAndIdentifiers) {
  EXPECT_THAT(NodesOfGpus({"2", "GPU-ab", "3"}, kFour), ElementsAre(1, 0, -1));
  EXPECT_THAT(NodesOfGpus({"9", "MIG-7", "GPU-zz"}, kFour), ElementsAre(-1, -1, -1));
}

const std::vector<std::string> kLetters = {"a", "b", "c", "d"};

TEST(PartOfMachine, GivesAgentsThatShareAMachineDifferentOnes) {
  EXPECT_THAT(PartOfMachine(kLetters, 0, 2), ElementsAre("a", "b"));
  EXPECT_THAT(PartOfMachine(kLetters, 1, 2), ElementsAre("c", "d"));
  EXPECT_THAT(PartOfMachine<std::string>({"a"}, 1, 2), ElementsAre("a")) << "there is one for both";
  EXPECT_THAT(PartOfMachine<std::string>({}, 1, 2), IsEmpty());
}

TEST(GpuAssignment, GivesEachLocalRankItsOwn) {
  GpuAssignment gpus({"4", "5"});
  EXPECT_EQ(gpus.Acquire(0, 0), "4");
  EXPECT_EQ(gpus.Acquire(1, 1), "5");
}

TEST(GpuAssignment, SharesThemEvenlyWhereRanksAreMore) {
  GpuAssignment gpus({"4", "5"});
  std::vector<std::string> taken;
  for (uint32_t rank = 0; rank < 4; ++rank) taken.push_back(gpus.Acquire(rank, rank));
  EXPECT_THAT(taken, ElementsAre("4", "5", "4", "5"));
}

TEST(GpuAssignment, AWorkerThatReplacesAnotherGetsTheOneThatIsFree) {
  GpuAssignment gpus({"4", "5", "6"});
  for (uint32_t rank = 0; rank < 3; ++rank) gpus.Acquire(rank, rank);
  gpus.GiveBack(1);
  // Those that are left have moved up: the new worker has local rank 2, whose GPU is in use.
  EXPECT_EQ(gpus.Acquire(3, 2), "5");
}

TEST(GpuAssignment, GivesOneNearTheCoresOfAWorker) {
  GpuAssignment gpus({"a", "b", "c", "d"}, {1, 1, 0, 0});
  EXPECT_EQ(gpus.Acquire(0, 0, {0}), "c");
  EXPECT_EQ(gpus.Acquire(1, 1, {1}), "b") << "that of its local rank, where it is near";
  EXPECT_EQ(gpus.Acquire(2, 2, {0}), "d");
  EXPECT_EQ(gpus.Acquire(3, 3, {0}), "a") << "one that is far rather than one that another has";
  EXPECT_EQ(gpus.Acquire(4, 0, {0}), "c") << "shared where all are taken";
  gpus.GiveBack(1);
  EXPECT_EQ(gpus.Acquire(5, 0, {0}), "b");
}

TEST(GpuAssignment, FollowsTheOrderWhereNothingIsNear) {
  GpuAssignment unbound({"a", "b"}, {1, 0}), unknown({"a", "b"}, {-1, -1}), by_order({"a", "b"});
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const std::string own = rank == 0 ? "a" : "b";
    EXPECT_EQ(unbound.Acquire(rank, rank), own) << "the worker is kept on no core";
    EXPECT_EQ(unknown.Acquire(rank, rank, {0}), own) << "no node is known";
    EXPECT_EQ(by_order.Acquire(rank, rank, {0}), own);
  }
}

TEST(AssignGpus, IsByTheSetting) {
  StartJob start;
  for (const auto& [setting, taken] :
       {std::pair(GpuVisibility::kAll, ""), std::pair(GpuVisibility::kOne, "0"),
        std::pair(GpuVisibility::kNear, "2")}) {
    start.share.gpus = setting;
    EXPECT_EQ(AssignGpus(start, {"0", "1", "2"}, kFour).Acquire(0, 0, {1}), taken);
  }
}

TEST(GpuAssignment, GivesNothingWhereThereIsNone) {
  GpuAssignment gpus;
  EXPECT_EQ(gpus.Acquire(0, 0), "");
}

StartJob Start(GpuVisibility gpus, std::vector<std::string> inherited,
               std::vector<std::string> given = {}) {
  StartJob start;
  start.ranks.slots = {{0, 0, 0, 1, 0, 1}};
  start.share.gpus = gpus;
  start.program.environment = std::move(inherited);
  start.program.given = std::move(given);
  return start;
}

TEST(SharedGpus, AreThoseOfTheListThatTheWorkersGet) {
  EXPECT_THAT(SharedGpus(Start(GpuVisibility::kOne, {}), kFour), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(SharedGpus(Start(GpuVisibility::kOne, {"CUDA_VISIBLE_DEVICES=1,3"}), kFour),
              ElementsAre("1", "3"));
  EXPECT_THAT(SharedGpus(Start(GpuVisibility::kOne, {"CUDA_VISIBLE_DEVICES=1,3"},
                               {"CUDA_VISIBLE_DEVICES=2"}),
                         kFour),
              ElementsAre("2"))
      << "-x wins";
}

TEST(SharedGpus, AreLookedForOnlyWhenSomethingIsDoneWithThem) {
  StartJob start = Start(GpuVisibility::kAll, {});
  EXPECT_THAT(SharedGpus(start, kFour), IsEmpty());
  start.share.bind_to = BindTo::kGpu;
  EXPECT_THAT(SharedGpus(start, kFour), ElementsAre("0", "1", "2", "3"));
}

}  // namespace
}  // namespace hvd
