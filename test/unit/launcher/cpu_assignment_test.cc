// Which CPUs each worker of an agent has.
#include "launcher/agent/workers/cpu_assignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<Cpu> kFourCores = {{0, 0, 0, 0}, {1, 0, 0, 1}, {2, 0, 0, 2}, {3, 0, 0, 3}};

Placement LocalRank(uint32_t local_rank, uint32_t local_size) {
  return {local_rank, 0, local_rank, local_size, 0, 1};
}

TEST(CpuAssignment, SharesTheCoresOutAmongTheSlots) {
  const CpuAssignment cpus(BindTo::kCore, kFourCores, 2, {}, 4);
  EXPECT_THAT(cpus.Of(0), ElementsAre(0, 1));
  EXPECT_THAT(cpus.Of(1), ElementsAre(2, 3));
  EXPECT_EQ(cpus.ShareOf(1).own_cores, 2U);
  EXPECT_EQ(cpus.ShareOf(1).host_cores, 4U);
}

TEST(CpuAssignment, AQuotaBelowTheCoresIsShared) {
  const CpuAssignment cpus(BindTo::kCore, kFourCores, 2, {}, 1);
  EXPECT_EQ(cpus.host_cores(), 1U);
  EXPECT_EQ(cpus.ShareOf(0).host_cores, 4U);
  EXPECT_EQ(cpus.ShareOf(0).own_cores, 2U);
  EXPECT_EQ(cpus.ShareOf(0).quota_cores, 1U);
  EXPECT_EQ(CpuAssignment(BindTo::kNone, kFourCores, 2, {}, 4).ShareOf(0).quota_cores, 0U);
}

TEST(CpuAssignment, ASlotThatIsAddedGetsThePartOfItsLocalRank) {
  CpuAssignment cpus(BindTo::kCore, kFourCores, 2, {}, 4);
  cpus.Add(LocalRank(3, 4));
  EXPECT_THAT(cpus.Of(2), ElementsAre(3));
  EXPECT_EQ(cpus.ShareOf(2).own_cores, 1U);
  EXPECT_THAT(cpus.Of(1), ElementsAre(2, 3)) << "those of running workers do not change";
}

TEST(CpuAssignment, APlaceOutsideOfTheWorldStillGetsAPart) {
  CpuAssignment cpus(BindTo::kCore, kFourCores, 1, {}, 4);
  cpus.Add(LocalRank(5, 2));
  EXPECT_THAT(cpus.Of(1), ElementsAre(2, 3));
  cpus.Add(LocalRank(0, 0));
  EXPECT_THAT(cpus.Of(2), ElementsAre(0, 1, 2, 3));
}

TEST(CpuAssignment, ChoicesOfAnotherLauncherCountWhereHvdrunBindsNothing) {
  CpuAssignment unbound(BindTo::kNone, kFourCores, 2, {}, 4);
  EXPECT_THAT(unbound.Of(0), IsEmpty());
  EXPECT_EQ(unbound.ShareOf(0).own_cores, 0U);
  unbound.UseIfUnbound(0, {7, 8, 9});
  EXPECT_THAT(unbound.Of(0), ElementsAre(7, 8, 9));
  EXPECT_EQ(unbound.ShareOf(0).own_cores, 3U);
  unbound.UseIfUnbound(1, {});
  EXPECT_THAT(unbound.Of(1), IsEmpty());

  CpuAssignment bound(BindTo::kCore, kFourCores, 2, {}, 4);
  bound.UseIfUnbound(0, {7});
  EXPECT_THAT(bound.Of(0), ElementsAre(0, 1));
}

}  // namespace
}  // namespace hvd
