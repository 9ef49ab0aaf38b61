#include "launcher/doctor/examined_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ExaminedHostsTest : public testing::Test {
 protected:
  // This machine and two others.
  ExaminedHostsTest() {
    for (const char* name : {"here", "a", "b"}) {
      HostReport& host = report_.hosts.emplace_back();
      host.name = name;
      host.remote = report_.hosts.size() > 1;
    }
    hosts_.Begin(TimePoint());
  }
  void Greet(uint32_t host, const std::string& identity) {
    hosts_[host].greeted = true;
    hosts_[host].identity = identity;
    hosts_.Enter(host, HostStage::kThere, TimePoint());
  }

  DoctorReport report_;
  ExaminedHosts hosts_{report_, 3, StageLimits::Default(), 0};
};

TEST_F(ExaminedHostsTest, TwoNamesOfOneHostAreOne) {
  Greet(0, "x");
  Greet(1, "y");
  EXPECT_TRUE(hosts_.AnyConnecting());
  Greet(2, "y");
  EXPECT_FALSE(hosts_.AnyConnecting());
  hosts_.MergeNames(TimePoint());
  EXPECT_EQ(report_.hosts[2].same_as, 1U);
  EXPECT_TRUE(hosts_.CanAsk(1));
  EXPECT_FALSE(hosts_.CanAsk(2)) << "its agent is asked once";
}

TEST_F(ExaminedHostsTest, AHostThatFailsOnItsWayIsGivenUpOnce) {
  hosts_.Enter(1, HostStage::kLogin, TimePoint());
  hosts_.Fail(1, "the key was refused", TimePoint());
  EXPECT_FALSE(hosts_.IsConnecting(1));
  EXPECT_THAT(hosts_.NoteFailures(TimePoint() + seconds(2)), ElementsAre(1));
  EXPECT_THAT(report_.hosts[1].trouble, HasSubstr("the key was refused"));
  EXPECT_EQ(report_.hosts[1].stage, HostStage::kLogin);
  EXPECT_EQ(report_.hosts[1].took, seconds(2));
  EXPECT_THAT(hosts_.NoteFailures(TimePoint() + seconds(3)), IsEmpty());
}

TEST_F(ExaminedHostsTest, AHostThatFailsInTheProofCanStillBeAsked) {
  Greet(1, "y");
  hosts_.Enter(1, HostStage::kProof, TimePoint());
  hosts_[1].proving = true;
  hosts_.Fail(1, "it does not reach b", TimePoint());
  EXPECT_THAT(hosts_.NoteFailures(TimePoint()), IsEmpty());
  EXPECT_FALSE(hosts_.Any(&ExaminedHost::proving));
  EXPECT_TRUE(hosts_.CanAsk(1));
}

TEST_F(ExaminedHostsTest, AnExaminationThatTakesTooLongIsAwaitedNoMore) {
  Greet(0, "x");
  hosts_[0].examining = true;
  hosts_[0].exam_until = TimePoint() + seconds(1);
  EXPECT_EQ(hosts_.NextExpiry(), TimePoint() + seconds(1));
  hosts_.Expire(TimePoint() + seconds(1));
  EXPECT_EQ(hosts_.Count(&ExaminedHost::examining), 0U);
}

TEST_F(ExaminedHostsTest, AfterCtrlCTheReportSaysWhichHostsHadNotAnswered) {
  Greet(0, "x");
  hosts_.Interrupt(TimePoint() + seconds(1));
  EXPECT_EQ(report_.hosts[0].trouble, "");
  EXPECT_THAT(report_.hosts[1].trouble, HasSubstr("was interrupted"));
}

}  // namespace
}  // namespace hvd
