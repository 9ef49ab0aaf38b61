#include "launcher/agent/workers/master_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <variant>
#include <vector>

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
    start.meeting.master_address = "10.0.0.1";
    start.meeting.master_port = 29500;
    start.ranks.slots = {{rank, 0, 0, 1, 0, 1}};
    return start;
  }
  // The messages that it sends when it looks.
  std::vector<ToDriver> Look(const StartJob& start, TimePoint now) {
    sent_.clear();
    port_.Look(start, now);
    return sent_;
  }

  std::optional<uid_t> listener_;
  std::optional<uint32_t> connected_port_;
  std::vector<ToDriver> sent_;
  MasterPort port_{[this](const ToDriver& message) { sent_.push_back(message); },
                   {[this](const std::string&, uint32_t) { return listener_; },
                    [this](const std::string& address, uint32_t port, uid_t user) {
                      return address == "10.0.0.1" && port == connected_port_ &&
                             user == ::geteuid();
                    }}};
  const uid_t stranger_ = ::geteuid() + 1;
};

TEST_F(MasterPortTest, AnotherUserWhoListensIsReportedOnceAndEndsNothing) {
  const StartJob start = JobWith(0);
  port_.Open(start, TimePoint());
  EXPECT_TRUE(Look(start, TimePoint() + minutes(1)).empty());
  listener_ = stranger_;
  const std::vector<ToDriver> sent = Look(start, TimePoint() + minutes(1));
  ASSERT_EQ(sent.size(), 1U);
  const auto* taken = std::get_if<MasterPortTaken>(&sent[0]);
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(taken->uid, stranger_);
  EXPECT_EQ(taken->port, 29500U);
  EXPECT_EQ(taken->host, "h");
  EXPECT_TRUE(Look(start, TimePoint() + minutes(1)).empty());
}

TEST_F(MasterPortTest, ARankThatIsConnectedThereEndsTheJob) {
  const StartJob start = JobWith(0);
  port_.Open(start, TimePoint());
  listener_ = stranger_;
  connected_port_ = 29501;
  EXPECT_EQ(Look(start, TimePoint()).size(), 1U) << "connected elsewhere";
  connected_port_ = 29500;
  const std::vector<ToDriver> sent = Look(start, TimePoint() + minutes(9));
  ASSERT_EQ(sent.size(), 1U);
  const auto* ended = std::get_if<WorkerNotStarted>(&sent[0]);
  ASSERT_NE(ended, nullptr);
  EXPECT_THAT(ended->reason, HasSubstr("a rank on host h connected to port 29500 of host h, which "
                                       "MASTER_PORT names, and another user (uid " +
                                       std::to_string(stranger_)));
  EXPECT_TRUE(Look(start, TimePoint() + minutes(9)).empty()) << "once";
}

TEST_F(MasterPortTest, ARankThatWasConnectedAlreadyIsFoundAtOnce) {
  const StartJob start = JobWith(0);
  port_.Open(start, TimePoint());
  listener_ = stranger_;
  connected_port_ = 29500;
  EXPECT_EQ(Look(start, TimePoint()).size(), 2U);
}

TEST_F(MasterPortTest, RanksOfOtherHostsAreNotToConnectThereEither) {
  const StartJob start = JobWith(1);
  port_.Open(start, TimePoint());
  connected_port_ = 29500;
  EXPECT_TRUE(Look(start, TimePoint()).empty()) << "the server is rank 0's";
  port_.Handle(MasterPortTaken{stranger_, 29500, "first"});
  const std::vector<ToDriver> sent = Look(start, TimePoint());
  ASSERT_EQ(sent.size(), 1U);
  const auto* ended = std::get_if<WorkerNotStarted>(&sent[0]);
  ASSERT_NE(ended, nullptr);
  EXPECT_EQ(ended->rank, 1U);
  EXPECT_THAT(ended->reason, HasSubstr("a rank on host h connected to port 29500 of host first"));
}

TEST_F(MasterPortTest, AServerOfThisUserEndsTheWatch) {
  const StartJob start = JobWith(0);
  port_.Open(start, TimePoint());
  listener_ = ::geteuid();
  EXPECT_TRUE(Look(start, TimePoint()).empty());
  listener_ = stranger_;
  connected_port_ = 29500;
  EXPECT_TRUE(Look(start, TimePoint()).empty());
}

TEST_F(MasterPortTest, ItIsNotWatchedForEver) {
  const StartJob start = JobWith(0);
  port_.Open(start, TimePoint());
  EXPECT_TRUE(Look(start, TimePoint() + MasterPort::kWatch).empty());
  listener_ = stranger_;
  EXPECT_TRUE(Look(start, TimePoint() + MasterPort::kWatch).empty());
}

TEST_F(MasterPortTest, APortOfAnotherHostOrOfTheUsersChoiceIsNotWatched) {
  listener_ = stranger_;
  port_.Open(JobWith(1), TimePoint());
  EXPECT_TRUE(Look(JobWith(1), TimePoint()).empty());
  StartJob chosen = JobWith(0);
  chosen.program.given = {"MASTER_PORT=29500"};
  port_.Open(chosen, TimePoint());
  EXPECT_TRUE(Look(chosen, TimePoint()).empty());
}

}  // namespace
}  // namespace hvd
