// Which hosts probe each other before a job starts, and the effect of their answers.
#include "launcher/driver/connectivity_round.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ConnectivityRoundTest : public testing::Test {
 protected:
  // Hosts a, b, c with a rank each, where b has none if `skip_b`.
  void Begin(bool skip_b = false) {
    options_.job_key = "key";
    options_.interfaces = {"eth0"};
    options_.first_port = 4000;
    options_.last_port = 4009;
    plan_.hosts = {"a", "b", "c"};
    for (uint32_t host = 0; host < 3; ++host) {
      hosts_.Add({.host = plan_.hosts[host], .remote = true});
      if (skip_b && host == 1) continue;
      const uint32_t rank = plan_.size();
      plan_.ranks.push_back({rank, host, 0, 1, rank, skip_b ? 2U : 3U});
    }
    tree_.Form(plan_, 8);
  }

  DriverOptions options_;
  Plan plan_;
  JobHosts hosts_;
  TreeRouter tree_{[](uint32_t, const ToAgent&) {}};
  ConnectivityRound round_{options_, plan_, hosts_, tree_};
};

TEST_F(ConnectivityRoundTest, AsksEachHostForItsPartners) {
  Begin(/*skip_b=*/true);
  const ProbeConnectivity question = round_.QuestionFor(2);
  EXPECT_EQ(question.job_key, "key");
  EXPECT_EQ(question.host, 1U) << "c is the second host with a rank";
  EXPECT_THAT(question.others, ElementsAre(0));
  EXPECT_THAT(question.names, ElementsAre("a"));
  EXPECT_THAT(question.interfaces, ElementsAre("eth0"));
  EXPECT_EQ(question.first_port, 4000);
  EXPECT_EQ(question.last_port, 4009);
  EXPECT_EQ(question.passes_on, 0) << "there is no tree";
}

TEST_F(ConnectivityRoundTest, CollectsAddressesOnceEach) {
  Begin();
  auto first = round_.Handle(0, {"", {"10.0.0.2", "10.0.0.3"}, "", {"", ""}});
  EXPECT_THAT(first.notes, ElementsAre("host b is reached at 10.0.0.2 by a",
                                       "host c is reached at 10.0.0.3 by a"));
  EXPECT_EQ(first.event.host, 0U);
  EXPECT_THAT(first.event.blocked, IsEmpty());
  auto second = round_.Handle(1, {"", {"10.0.0.1", "10.0.0.3"}, "", {}});
  EXPECT_THAT(second.notes, ElementsAre("host a is reached at 10.0.0.1 by b"));
  EXPECT_THAT(hosts_[2].addresses, ElementsAre("10.0.0.3"));
  EXPECT_EQ(round_.AddressesText(), "a at 10.0.0.1, b at 10.0.0.2, c at 10.0.0.3");
}

TEST_F(ConnectivityRoundTest, ReportsBlockedRoutesAndTrouble) {
  Begin();
  auto answer = round_.Handle(1, {"no socket", {"", ""}, "", {"", "c does not answer"}});
  EXPECT_EQ(answer.event.trouble, "no socket");
  ASSERT_EQ(answer.event.blocked.size(), 1U);
  EXPECT_EQ(answer.event.blocked[0].from, 1U);
  EXPECT_EQ(answer.event.blocked[0].to, 2U);
  EXPECT_THAT(answer.notes, ElementsAre("host b: c does not answer"));
}

TEST_F(ConnectivityRoundTest, IgnoresAnswersBeyondItsQuestion) {
  Begin(/*skip_b=*/true);
  auto answer = round_.Handle(0, {"", {"10.0.0.3", "10.9.9.9"}, "", {"", "x", "y"}});
  EXPECT_THAT(answer.notes, ElementsAre("host c is reached at 10.0.0.3 by a"));
  EXPECT_THAT(answer.event.blocked, IsEmpty());
  EXPECT_THAT(round_.Handle(1, {"", {"10.0.0.1"}, "", {"x"}}).notes, IsEmpty())
      << "b was not asked";
}

TEST_F(ConnectivityRoundTest, EndsWithAnAddressForEveryHost) {
  Begin();
  round_.Handle(1, {"", {"10.0.0.1", ""}, "", {}});
  round_.Finish(5678);
  EXPECT_EQ(hosts_.master().address, "10.0.0.1");
  EXPECT_EQ(hosts_.master().port, 5678U);
  EXPECT_THAT(hosts_[2].addresses, ElementsAre("127.0.0.1")) << "no host reached it";
}

TEST_F(ConnectivityRoundTest, TellsAnIpv4AddressWhoeverAnswersFirst) {
  Begin();
  round_.Handle(1, {"", {"fd00::1", ""}, "", {}});
  round_.Handle(2, {"", {"10.0.0.1", ""}, "", {}});
  round_.Finish(5678);
  EXPECT_EQ(hosts_.master().address, "10.0.0.1");
}

TEST_F(ConnectivityRoundTest, TellsAnIpv6AddressWhereThereIsNoOther) {
  Begin();
  round_.Handle(1, {"", {"fd00::1", ""}, "", {}});
  round_.Finish(5678);
  EXPECT_EQ(hosts_.master().address, "fd00::1");
}

TEST_F(ConnectivityRoundTest, NamesTheFirstHostWhereNoAddressIsKnown) {
  Begin();
  round_.Finish(1);
  EXPECT_EQ(hosts_.master().address, "a");
}

}  // namespace
}  // namespace hvd
