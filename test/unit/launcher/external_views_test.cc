// Which worlds hvdrun top and dump can look at, beside the jobs of hvdrun.
#include "launcher/live/external_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kA = "0123456789abcdef0123456789abcdef", kB = "01ff456789abcdef0123456789abcdef";
const std::string kJob = "0123000000000000";

JobHere Job(const std::string& id, bool part = false) {
  JobHere job;
  job.id = id;
  job.part = part;
  return job;
}

std::string Line(const std::string& name) {
  return "0000000000000000: 00000002 00000000 00010000 0001 01 12345 " + name + "\n";
}

TEST(ExternalViewsTest, AgentsThatListenAreFoundOnceEach) {
  const std::string text =
      "Num RefCount Protocol Flags Type St Inode Path\n" + Line("@hvd-view-" + kA) +
      Line("@hvd-view-" + kJob) + Line("@hvd-view-" + kA) + Line("@hvd-view-" + kA + "0") +
      Line("@hvd-adopt-0-" + kB) + Line("/run/hvd-view-" + kB) + Line("@hvd-view-" + kB);
  EXPECT_THAT(ExternalViewsIn(text), ElementsAre(kA, kB));
  EXPECT_THAT(ExternalViewsIn(""), IsEmpty());
}

TEST(ExternalViewsTest, TheOnlyOneNeedsNoName) {
  EXPECT_EQ(*FindView({}, {kA}, ""), kA);
  EXPECT_EQ(*FindView({Job(kJob)}, {}, ""), kJob);
  // A part of a job can be looked at elsewhere only.
  EXPECT_EQ(*FindView({Job(kJob, /*part=*/true)}, {kA}, ""), kA);
}

TEST(ExternalViewsTest, OfSeveralOneIsNamedByTheBeginningOfItsId) {
  const std::vector<JobHere> jobs = {Job(kJob)};
  const Status several = FindView(jobs, {kA, kB}, "").status();
  EXPECT_EQ(several.code(), Code::kInvalidArgument);
  EXPECT_EQ(several.message(), "name one of your jobs: " + kA + ", " + kB + ", " + kJob);
  EXPECT_EQ(*FindView(jobs, {kA, kB}, "01ff"), kB);
  EXPECT_EQ(*FindView(jobs, {kA, kB}, kJob), kJob);
  EXPECT_FALSE(FindView(jobs, {kA, kB}, "0123").ok());
  EXPECT_THAT(FindView(jobs, {kA}, "77").status().message(), HasSubstr("no job '77'"));
}

TEST(ExternalViewsTest, WithoutAnyItIsTheSentenceAboutJobs) {
  EXPECT_THAT(FindView({}, {}, "").status().message(), HasSubstr("no job of yours"));
}

}  // namespace
}  // namespace hvd
