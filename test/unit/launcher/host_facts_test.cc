// Texts of /proc, read without a machine that has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/process/cgroup.h"
#include "launcher/process/jobs/driver_status.h"
#include "launcher/process/jobs/job_id.h"
#include "launcher/process/jobs/local_jobs.h"
#include "launcher/process/oom.h"

namespace hvd {
namespace {

constexpr const char* kMounts =
    "24 1 0:21 / /proc rw - proc proc rw\n"
    "30 24 0:26 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw\n";

TEST(CgroupFolder, IsBelowTheMount) {
  EXPECT_EQ(CgroupFolder(kMounts, "0::/user.slice/me\n"), "/sys/fs/cgroup/user.slice/me");
  EXPECT_EQ(CgroupFolder(kMounts, "5:cpu:/x\n0::/\n"), "/sys/fs/cgroup");
}

TEST(CgroupFolder, KnowsContainers) {
  constexpr const char* kInside = "30 24 0:26 /docker/1 /cg rw - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(CgroupFolder(kInside, "0::/docker/1/sub\n"), "/cg/sub");
  EXPECT_EQ(CgroupFolder(kInside, "0::/elsewhere\n"), "");
}

TEST(CgroupFolder, IsNothingWithoutVersion2) {
  EXPECT_EQ(CgroupFolder(kMounts, "5:cpu:/x\n"), "");
  EXPECT_EQ(CgroupFolder("24 1 0:21 / /proc rw - proc proc rw\n", "0::/\n"), "");
  EXPECT_EQ(CgroupFolder("", ""), "");
}

TEST(OomKills, AreReadFromAllThreeForms) {
  EXPECT_EQ(OomKillsIn("low 0\noom 3\noom_kill 2\noom_group_kill 0\n"), 2u);
  EXPECT_EQ(OomKillsIn("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"), 7u);
  EXPECT_EQ(OomKillsIn("nr_free 1\noom_kill 12"), 12u);
  EXPECT_EQ(OomKillsIn("not_oom_kill 9\noom_kill x\n"), std::nullopt);
}

TEST(AgentJobIn, KnowsAgentsOnly) {
  using namespace std::string_view_literals;
  EXPECT_EQ(AgentJobIn("/proc/self/exe\0agent\0--job\0"
                       "0123456789abcdef\0"sv),
            "0123456789abcdef");
  EXPECT_EQ(AgentJobIn("hvdrun\0agent\0--job\0nonsense\0"sv), std::nullopt);
  EXPECT_EQ(AgentJobIn("hvdrun\0-np\0"
                       "2\0true\0"sv),
            std::nullopt);
  EXPECT_EQ(AgentJobIn(""), std::nullopt);
}

TEST(HostOfAgent, IsTheWayBackFromTheIdOfItsAgent) {
  for (uint32_t host : {0u, 2u, 70'000u}) {
    EXPECT_EQ(HostOfAgent("00000000000000fe", AgentJobId("00000000000000fe", host)), host);
    EXPECT_EQ(HostOfAgent("ffffffffffffffff", AgentJobId("ffffffffffffffff", host)), host);
  }
  for (const char* other : {"", "fe", "00000000000000fd", "10000000000000fe", "00000000000000fx"})
    EXPECT_FALSE(HostOfAgent("00000000000000fe", other)) << other;
}

TEST(AgentJobId, IsTheJobsOwnForHost0AndDiffersForOthers) {
  EXPECT_EQ(AgentJobId("00000000000000fe", 0), "00000000000000fe");
  EXPECT_EQ(AgentJobId("00000000000000fe", 2), "0000000000000100");
}

TEST(JobNamed, TakesTheFirstLettersOfOneJob) {
  std::vector<JobHere> jobs(3);
  jobs[0].id = "0123456789abcdef";
  jobs[1].id = "0123ffffffffffff";
  jobs[2].id = "fedcba9876543210";
  EXPECT_EQ((*JobNamed(jobs, "0123456789abcdef"))->id, jobs[0].id);
  EXPECT_EQ((*JobNamed(jobs, "fe"))->id, jobs[2].id);
  EXPECT_EQ(
      JobNamed(jobs, "0123").status().message(),
      "jobs 0123456789abcdef and 0123ffffffffffff both begin with '0123'; type more of the id");
  for (const char* none : {"", "1", "0123456789abcdef0"}) EXPECT_FALSE(JobNamed(jobs, none).ok());
}

TEST(DriversIn, FindsTheirDoorsAmongTheSocketsOfAllPrograms) {
  EXPECT_THAT(
      DriversIn(
          "Num       RefCount Protocol Flags    Type St Inode Path\n"
          "0000000000000000: 00000002 00000000 00010000 0005 01 1 @hvd-driver-0123456789abcdef\n"
          "0000000000000000: 00000003 00000000 00000000 0005 03 2 @hvd-driver-0123456789abcdef\n"
          "0000000000000000: 00000002 00000000 00010000 0005 01 3 @hvd-driver-0123456789abcdef0\n"
          "0000000000000000: 00000002 00000000 00010000 0005 01 4 @hvd-driver-nothing\n"
          "0000000000000000: 00000002 00000000 00010000 0005 01 5 "
          "/run/hvd-driver-0123456789abcdee\n"
          "0000000000000000: 00000002 00000000 00010000 0005 01 6\n"
          "0000000000000000: 00000002 00000000 00010000 0005 01 7 @hvd-driver-0123456789abcdea"),
      ::testing::ElementsAre("0123456789abcdef", "0123456789abcdea"));
}

TEST(JobCounts, AreReadAsTheyAreWritten) {
  std::optional<JobCounts> counts = ParseJobCounts(JobCountsText({8, 5}));
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->size, 8U);
  EXPECT_EQ(counts->alive, 5U);
  for (const char* wrong : {"", "8", "8 ", "8 9", "8 5 ", "-1 0", " 8 5", "8 5x", "99999999999 1"})
    EXPECT_FALSE(ParseJobCounts(wrong)) << wrong;
}

TEST(PartsBeside, AreOnePerJobAndNoneOfAJobThatIsListed) {
  JobHere listed, first, second, other;
  listed.id = "00000000000000f0";
  first.id = "00000000000000f1";  // its second host, before a rank was started
  second.id = other.id = "0123456789abcdef";
  second.ranks_alive = 2;
  other.ranks_alive = 1;
  std::vector<JobHere> parts = PartsBeside({listed}, {first, second, other});
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].id, second.id);
  EXPECT_EQ(parts[0].ranks_alive, 3U);
}

TEST(JobsTable, SaysWhereTheRestOfAJobIs) {
  JobHere job;
  job.id = "0123456789abcdef";
  job.size = 4;
  job.ranks_alive = 2;
  job.command = "sleep 1";
  job.part = true;
  EXPECT_THAT(JobsTable({job}),
              ::testing::HasSubstr("part of a job of another machine: sleep 1\n"));
  job.from = "10.0.0.1";
  EXPECT_THAT(JobsTable({job}),
              ::testing::HasSubstr("     4      2  part of a job of 10.0.0.1: sleep 1\n"));
}

TEST(JobsTable, HasALinePerJob) {
  JobHere job;
  job.id = "0123456789abcdef";
  job.age_seconds = 3723;
  job.size = 4;
  job.ranks_alive = 3;
  job.command = "hvdrun -np 4 true";
  EXPECT_EQ(JobsTable({job}),
            "JOB                    AGE     NP  ALIVE  COMMAND\n"
            "0123456789abcdef   1:02:03      4      3  hvdrun -np 4 true\n");
}

}  // namespace
}  // namespace hvd
