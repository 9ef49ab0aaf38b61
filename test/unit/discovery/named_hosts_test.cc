#include "discovery/named_hosts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "discovery/this_machine.h"

namespace hvd {
namespace {

using Hosts = std::vector<HostSlots>;

Result<Hosts> Merged(const std::vector<HostSpec>& specs) {
  return MergeNamedHosts(
      specs, {[](const std::string& name) { return name == "me" || name == "localhost"; },
              [](bool remote) { return remote ? 0u : 7u; }});
}

TEST(ThisMachine, CountsTheGpusThatAJobMayUse) {
  std::string folder = testing::TempDir() + "gpus";
  std::filesystem::create_directory(folder);
  for (const char* name : {"/nvidia0", "/nvidia1", "/nvidia10", "/nvidiactl", "/nvidia-uvm"})
    std::ofstream(folder + name) << "";
  EXPECT_EQ(CountGpus(folder, std::nullopt), 3U);
  EXPECT_EQ(CountGpus(folder, "0,10"), 2U);
  EXPECT_EQ(CountGpus(folder, "GPU-1, GPU-2 ,MIG-3"), 3U);
  EXPECT_EQ(CountGpus(folder, "1,-1,2"), 1U) << "the list ends there";
  EXPECT_EQ(CountGpus(folder, "0,1,2,3,4"), 3U) << "no more than there are";
  for (const char* none : {"", "-1", "-1,0"}) EXPECT_EQ(CountGpus(folder, none), 0U) << none;
  EXPECT_EQ(CountGpus(folder + "/none", std::nullopt), 0U);
  std::filesystem::remove_all(folder);
}

TEST(NamedHosts, UsesSlotsAsSaidOrTheMachinesOwn) {
  EXPECT_EQ(*Merged({{"me", 4}}), (Hosts{{"me", 4}}));
  EXPECT_EQ(*Merged({{"me", std::nullopt}}), (Hosts{{"me", 7}}));
}

TEST(NamedHosts, MergesTwoNamesOfOneMachine) {
  EXPECT_EQ(*Merged({{"localhost", 1}, {"me", 2}, {"localhost", 3}}), (Hosts{{"localhost", 6}}));
}

TEST(NamedHosts, KeepsHowTheMachineIsReached) {
  HostSpec full{"me", 2, "bob", 2222, 4};
  EXPECT_EQ(*Merged({full}), (Hosts{{"me", 2, "bob", 2222, 4}}));
  EXPECT_EQ(*Merged({full, full}), (Hosts{{"me", 4, "bob", 2222, 8}}));
  EXPECT_EQ(*Merged({{"localhost", 1}, full}), (Hosts{{"localhost", 3, "bob", 2222}}))
      << "no limit of one is no limit of the sum";
  EXPECT_EQ(*Merged({full, {"me", 1, "eve", 1}}), (Hosts{{"me", 3, "bob", 2222}}));
}

TEST(NamedHosts, KeepsOtherMachinesApartInTheOrderOfTheirNames) {
  auto hosts = Merged({{"node7", 2}, {"me", 1}, {"node8", {}}, {"localhost", 1}, {"node7", 3}});
  ASSERT_TRUE(hosts.ok());
  ASSERT_EQ(hosts->size(), 3U);
  EXPECT_EQ((*hosts)[0], (HostSlots{.host = "node7", .slots = 5, .remote = true}));
  EXPECT_EQ((*hosts)[1], (HostSlots{.host = "me", .slots = 2}));
  EXPECT_EQ((*hosts)[2],
            (HostSlots{.host = "node8", .slots = 1, .remote = true, .slots_known = false}))
      << "as many as are known for certain";
  EXPECT_FALSE(Merged({}).status().message().empty());
}

TEST(NamedHosts, OneNameWithTwoPortsIsTwoHosts) {
  auto hosts = Merged({{"node7", 1, "", 2222}, {"node7", 2, "", 2223}, {"node7", 3}});
  ASSERT_TRUE(hosts.ok());
  ASSERT_EQ(hosts->size(), 2U);
  EXPECT_EQ((*hosts)[0], (HostSlots{.host = "node7", .slots = 4, .port = 2222, .remote = true}))
      << "who says no port speaks of the first";
  EXPECT_EQ((*hosts)[1].port, 2223);
  EXPECT_EQ((*hosts)[1].slots, 2U);
}

TEST(SimulateHosts, MakesEqualHosts) {
  EXPECT_EQ(SimulateHosts({"me", 2}, 1), (Hosts{{"me", 2}}));
  EXPECT_EQ(SimulateHosts({"me", 2}, 3), (Hosts{{"host-0", 2}, {"host-1", 2}, {"host-2", 2}}));
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
