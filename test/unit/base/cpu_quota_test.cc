#include "runtime/base/cpu_quota.h"

#include <gtest/gtest.h>

#include <map>

namespace hvd {
namespace {

using Files = std::map<std::string, std::string>;

std::optional<double> Quota(const char* mounts, const char* groups, const Files& files) {
  return CpuQuotaOf(mounts, groups, [&](const std::string& path) {
    const auto found = files.find(path);
    return found == files.end() ? "" : found->second;
  });
}

constexpr const char* kVersion2 =
    "24 1 0:21 / /proc rw - proc proc rw\n"
    "30 24 0:26 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw\n";
constexpr const char* kVersion1 =
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";

TEST(CpuQuota, Version2IsTheLeastUpTheTree) {
  const Files files = {{"/sys/fs/cgroup/a.slice/cpu.max", "150000 100000\n"},
                       {"/sys/fs/cgroup/a.slice/job/cpu.max", "400000 100000\n"},
                       {"/sys/fs/cgroup/a.slice/job/step/cpu.max", "max 100000\n"},
                       {"/sys/fs/cgroup/b.slice/cpu.max", "50000 100000\n"}};
  EXPECT_EQ(Quota(kVersion2, "0::/a.slice/job/step\n", files), 1.5);
  EXPECT_EQ(Quota(kVersion2, "0::/\n", files), std::nullopt);
  EXPECT_EQ(Quota(kVersion2, "0::/c.slice\n", files), std::nullopt);
}

TEST(CpuQuota, Version1HasTwoFiles) {
  const Files files = {{"/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "-1\n"},
                       {"/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n"},
                       {"/sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us", "25000\n"},
                       {"/sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_period_us", "50000\n"},
                       {"/sys/fs/cgroup/cpuset/docker/1/cpu.cfs_quota_us", "1\n"}};
  EXPECT_EQ(Quota(kVersion1, "5:cpuset:/docker/1\n4:cpu,cpuacct:/docker/1\n0::/\n", files), 0.5);
  EXPECT_EQ(Quota(kVersion1, "4:cpu,cpuacct:/docker\n", files), std::nullopt);
  EXPECT_EQ(Quota(kVersion1, "5:cpuset:/docker/1\n", files), std::nullopt) << "not of cpu";
}

TEST(CpuQuota, IsFoundInsideOfAContainer) {
  const Files at_mount = {{"/sys/fs/cgroup/cpu.max", "200000 100000\n"}};
  // With a namespace of its own, without one, and with a group that lies outside of it.
  EXPECT_EQ(Quota(kVersion2, "0::/\n", at_mount), 2.0);
  constexpr const char* kPart = "30 24 0:26 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(Quota(kPart, "0::/docker/1\n", at_mount), 2.0);
  EXPECT_EQ(Quota(kPart, "0::/docker/17\n", at_mount), 2.0);
  EXPECT_EQ(Quota(kVersion2, "0::/../2\n", at_mount), 2.0);
  const Files below = {{"/sys/fs/cgroup/sub/cpu.max", "100000 100000\n"},
                       {"/sys/fs/cgroup/cpu.max", "200000 100000\n"}};
  EXPECT_EQ(Quota(kPart, "0::/docker/1/sub\n", below), 1.0);
}

TEST(CpuQuota, BothVersionsAtOnce) {
  const std::string mounts = std::string(kVersion1) + kVersion2;
  const Files files = {{"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000"},
                       {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000"},
                       {"/sys/fs/cgroup/cpu.max", "max 100000"}};
  EXPECT_EQ(Quota(mounts.c_str(), "4:cpu,cpuacct:/\n0::/\n", files), 3.0);
}

TEST(CpuQuota, WhatIsNotUnderstoodIsNoLimit) {
  for (const char* text : {"", "max", "1", "0 100000", "a b", "100000 0", "1 2 3"}) {
    EXPECT_EQ(Quota(kVersion2, "0::/\n", {{"/sys/fs/cgroup/cpu.max", text}}), std::nullopt) << text;
  }
  EXPECT_EQ(Quota("", "", {}), std::nullopt);
  EXPECT_EQ(Quota("x - \n1 2 3 / - cgroup2 a\n", ":\n::\n0:", {}), std::nullopt);
}

TEST(UsableCpus, AreWholeOnes) {
  EXPECT_EQ(UsableCpus(8, std::nullopt), 8u);
  EXPECT_EQ(UsableCpus(8, 2.0), 2u);
  EXPECT_EQ(UsableCpus(8, 2.9), 2u);
  EXPECT_EQ(UsableCpus(8, 0.5), 1u);
  EXPECT_EQ(UsableCpus(2, 16.0), 2u);
  EXPECT_EQ(UsableCpus(0, std::nullopt), 1u);
}

}  // namespace
}  // namespace hvd
