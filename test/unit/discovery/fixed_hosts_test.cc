#include "discovery/fixed_hosts.h"

#include <gtest/gtest.h>

#include "discovery/this_machine.h"

namespace hvd {
namespace {

using Hosts = std::vector<HostSlots>;

FixedHosts Named(std::vector<HostSpec> specs) {
  return FixedHosts(std::move(specs),
                    {[](const std::string& name) { return name == "me" || name == "localhost"; },
                     [] { return 7u; }});
}

TEST(FixedHosts, UsesSlotsAsSaidOrTheMachinesOwn) {
  EXPECT_EQ(*Named({{"me", 4}}).Hosts(), (Hosts{{"me", 4}}));
  EXPECT_EQ(*Named({{"me", std::nullopt}}).Hosts(), (Hosts{{"me", 7}}));
}

TEST(FixedHosts, MergesTwoNamesOfOneMachine) {
  EXPECT_EQ(*Named({{"localhost", 1}, {"me", 2}, {"localhost", 3}}).Hosts(),
            (Hosts{{"localhost", 6}}));
}

TEST(FixedHosts, RefusesOtherMachines) {
  auto hosts = Named({{"me", 1}, {"node7", 2}}).Hosts();
  ASSERT_FALSE(hosts.ok());
  EXPECT_EQ(hosts.status().message(),
            "host node7 is not this machine, and jobs on other hosts are not available yet; try -H "
            "localhost");
  EXPECT_FALSE(Named({}).Hosts().ok());
}

TEST(PlayHosts, MakesEqualHosts) {
  EXPECT_EQ(PlayHosts({"me", 2}, 1), (Hosts{{"me", 2}}));
  EXPECT_EQ(PlayHosts({"me", 2}, 3), (Hosts{{"host-0", 2}, {"host-1", 2}, {"host-2", 2}}));
}

TEST(ThisMachine, KnowsItsNames) {
  EXPECT_TRUE(IsThisMachine("localhost"));
  EXPECT_TRUE(IsThisMachine("127.0.0.1"));
  EXPECT_TRUE(IsThisMachine(HostName()));
  EXPECT_FALSE(IsThisMachine("192.0.2.77")) << "an address for documentation only";
  EXPECT_GE(DefaultSlots(), 1u);
}

}  // namespace
}  // namespace hvd
