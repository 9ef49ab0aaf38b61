#include "launcher/tuning/link_kind.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "test/fakes/temporary_folder.h"

namespace hvd {
namespace {

TEST(SpeedClass, IsTheUsualSpeedBelow) {
  EXPECT_EQ(SpeedClass(10), "below 100 Mbit/s");
  EXPECT_EQ(SpeedClass(100), "100 Mbit/s");
  EXPECT_EQ(SpeedClass(1000), "1 Gbit/s");
  EXPECT_EQ(SpeedClass(2500), "2.5 Gbit/s");
  EXPECT_EQ(SpeedClass(9999), "5 Gbit/s");
  EXPECT_EQ(SpeedClass(10'000), "10 Gbit/s");
  EXPECT_EQ(SpeedClass(20'000), "10 Gbit/s");
  EXPECT_EQ(SpeedClass(int64_t{1} << 40), "800 Gbit/s");
  EXPECT_EQ(SpeedClass(0), "unknown");
  EXPECT_EQ(SpeedClass(-1), "unknown");
}

class LinkKindTest : public TemporaryFolderTest {
 protected:
  void Interface(const std::string& name, const std::string& speed) {
    std::filesystem::create_directories(folder_ + "/" + name);
    std::ofstream(folder_ + "/" + name + "/speed") << speed;
  }
};

TEST_F(LinkKindTest, IsThatOfTheFastestInterface) {
  Interface("eth0", "1000\n");
  Interface("ib0", "100000\n");
  EXPECT_EQ(LinkKind(std::vector<std::string>{"eth0"}, folder_), "1 Gbit/s");
  EXPECT_EQ(LinkKind(std::vector<std::string>{"eth0", "ib0"}, folder_), "100 Gbit/s");
}

TEST_F(LinkKindTest, WhatTheKernelDoesNotKnowIsUnknown) {
  Interface("veth0", "-1\n");
  Interface("odd", "fast\n");
  Interface("empty", "");
  for (const char* name : {"veth0", "odd", "empty", "missing"})
    EXPECT_EQ(LinkKind(std::vector<std::string>{name}, folder_), "unknown") << name;
  EXPECT_EQ(LinkKind({}, folder_), "loopback");
}

}  // namespace
}  // namespace hvd
