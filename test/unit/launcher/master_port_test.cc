#include "launcher/agent/workers/master_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace hvd {
namespace {

using std::chrono::minutes;
using testing::HasSubstr;

class MasterPortTest : public testing::Test {
 protected:
  // A job whose rank `rank` alone is on this host.
  static StartJob JobWith(uint32_t rank) {
    StartJob start;
    start.host = "h";
    start.master_address = "10.0.0.1";
    start.master_port = 29500;
    start.slots = {{rank, 0, 0, 1, 0, 1}};
    return start;
  }
  std::optional<WorkerNotStarted> Look(const StartJob& start, TimePoint now) {
    return port_.Look(start, now);
  }

  std::optional<uid_t> listener_;
  MasterPort port_{[this](const std::string&, uint32_t) { return listener_; }};
  const uid_t stranger_ = ::geteuid() + 1;
};

TEST_F(MasterPortTest, AnotherUserWhoListensIsReportedOnce) {
  const StartJob start = JobWith(0);
  port_.Open(start, TimePoint());
  EXPECT_FALSE(Look(start, TimePoint() + minutes(1)));
  listener_ = stranger_;
  const std::optional<WorkerNotStarted> report = Look(start, TimePoint() + minutes(1));
  ASSERT_TRUE(report);
  EXPECT_THAT(report->reason, HasSubstr("port 29500 of host h, which MASTER_PORT names, was taken "
                                        "by another user (uid " +
                                        std::to_string(stranger_)));
  EXPECT_FALSE(Look(start, TimePoint() + minutes(1)));
}

TEST_F(MasterPortTest, AServerOfThisUserEndsTheWatch) {
  const StartJob start = JobWith(0);
  port_.Open(start, TimePoint());
  listener_ = ::geteuid();
  EXPECT_FALSE(Look(start, TimePoint()));
  listener_ = stranger_;
  EXPECT_FALSE(Look(start, TimePoint()));
}

TEST_F(MasterPortTest, ItIsNotWatchedForEver) {
  const StartJob start = JobWith(0);
  port_.Open(start, TimePoint());
  EXPECT_FALSE(Look(start, TimePoint() + MasterPort::kWatch));
  listener_ = stranger_;
  EXPECT_FALSE(Look(start, TimePoint() + MasterPort::kWatch));
}

TEST_F(MasterPortTest, APortOfAnotherHostOrOfTheUsersChoiceIsNotWatched) {
  listener_ = stranger_;
  port_.Open(JobWith(1), TimePoint());
  EXPECT_FALSE(Look(JobWith(1), TimePoint()));
  StartJob chosen = JobWith(0);
  chosen.given_environment = {"MASTER_PORT=29500"};
  port_.Open(chosen, TimePoint());
  EXPECT_FALSE(Look(chosen, TimePoint()));
}

}  // namespace
}  // namespace hvd
