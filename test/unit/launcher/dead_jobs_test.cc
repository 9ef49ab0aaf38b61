#include "launcher/process/jobs/dead_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const JobPlace kHere = {"boot", "4026531836", 1000, {50, 40, 1}};

JobProcess Process(pid_t pid, pid_t parent, const std::string& job = "a") {
  return {{.pid = pid, .parent = parent, .state = 'S'}, job, kHere, false};
}

std::vector<pid_t> Pids(const std::map<std::string, std::vector<ProcessInfo>>& left,
                        const std::string& job = "a") {
  std::vector<pid_t> pids;
  if (auto found = left.find(job); found != left.end()) {
    for (const ProcessInfo& process : found->second) pids.push_back(process.pid);
  }
  return pids;
}

TEST(LeftOver, OrphansOfADeadJobAndWhatIsBelowThem) {
  // 40 is a subreaper above hvdrun: it adopts, as the first process does.
  EXPECT_THAT(
      Pids(LeftOver({Process(60, 1), Process(61, 60), Process(62, 61), Process(70, 40)}, kHere)),
      ElementsAre(60, 61, 62, 70));
}

TEST(LeftOver, NotOfAJobWithAnAgentOrAWarden) {
  std::vector<JobProcess> seen = {Process(60, 1), Process(61, 60), Process(80, 1, "b")};
  seen.push_back(Process(90, 1));
  seen.back().keeps_job = true;
  EXPECT_THAT(Pids(LeftOver(seen, kHere)), IsEmpty());
  EXPECT_THAT(Pids(LeftOver(seen, kHere), "b"), ElementsAre(80));
}

TEST(LeftOver, NotOfOtherPlaces) {
  for (auto change :
       {+[](JobPlace& p) { p.boot = "other"; }, +[](JobPlace& p) { p.pid_namespace = "1"; },
        +[](JobPlace& p) { p.user = 0; }}) {
    JobProcess process = Process(60, 1);
    change(*process.place);
    EXPECT_THAT(Pids(LeftOver({process}, kHere)), IsEmpty());
  }
  JobProcess unknown = Process(60, 1);
  unknown.place.reset();
  EXPECT_THAT(Pids(LeftOver({unknown}, kHere)), IsEmpty());
}

TEST(LeftOver, NotWhatALiveStrangerHasStartedWithItsEnvironment) {
  EXPECT_THAT(Pids(LeftOver({Process(60, 55), Process(61, 60), Process(62, 1)}, kHere)),
              ElementsAre(62));
}

TEST(LeftOver, ParentsInACircleEnd) {
  EXPECT_THAT(Pids(LeftOver({Process(60, 61), Process(61, 60)}, kHere)), IsEmpty());
}

TEST(JobPlace, TextIsReadBack) {
  std::optional<JobPlace> place = ParseJobPlace(JobPlaceText(kHere));
  ASSERT_TRUE(place);
  EXPECT_TRUE(place->SameAs(kHere));
  EXPECT_EQ(place->parents, kHere.parents);
  for (const char* bad :
       {"", "b", "b/1", "b/1/", "b/1/x/1", "b/1/0/1,x", "/1/0/1", "b//0/1", "b/1/-1/1"})
    EXPECT_FALSE(ParseJobPlace(bad)) << bad;
}

TEST(JobPlace, HereIsSomewhere) {
  std::optional<JobPlace> place = PlaceHere();
  ASSERT_TRUE(place);
  EXPECT_EQ(place->parents.front(), ::getppid());
  EXPECT_EQ(place->parents.back(), 1);
}

}  // namespace
}  // namespace hvd
