#include "runtime/backends/hosts/coordination/host_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace hvd {
namespace {

using ::testing::ElementsAre;

TEST(HostMap, TheFirstMembersComeInOrderOfHosts) {
  const HostMap map{{1, 0, 1, 0, 2}, 0};
  EXPECT_THAT(FirstMembers(map, {}), ElementsAre(1, 0, 4));
  const std::vector<uint32_t> set = {2, 3, 4};
  EXPECT_THAT(FirstMembers(map, set), ElementsAre(3, 2, 4));
}

TEST(HostMap, HostsWithoutAMemberAreLeftOut) {
  const HostMap map{{0, 1, 2}, 0};
  const std::vector<uint32_t> set = {2};
  EXPECT_THAT(FirstMembers(map, set), ElementsAre(2));
}

}  // namespace
}  // namespace hvd
