#include "launcher/channels/late_host.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace hvd {
namespace {

TEST(MayResolveLater, NamesThatANameServerMayKnowOneDay) {
  for (const std::string name :
       {"node1", "node-1.cluster.local", "node_1", "worker-0.job.ns.svc.cluster.local.", "1node",
        "10.1.2.node", "\xc3\xa4", "NODE"}) {
    EXPECT_TRUE(MayResolveLater(name)) << name;
  }
  EXPECT_TRUE(MayResolveLater(std::string(63, 'a') + ".b"));
}

TEST(MayResolveLater, NotWhatIsNoName) {
  for (const std::string name : {"", ".", "a..b", ".a", "a b", "fe80::1%eth0", "1.2.3.444", "1.2.3",
                                 "12", "no-such-host.invalid", "a.INVALID."}) {
    EXPECT_FALSE(MayResolveLater(name)) << name;
  }
  EXPECT_FALSE(MayResolveLater(std::string(64, 'a') + ".b"));
  std::string longest;
  while (longest.size() < 252) longest += "a.";
  EXPECT_TRUE(MayResolveLater(longest + "b"));
  EXPECT_FALSE(MayResolveLater(longest + "bc"));
}

TEST(MayRetry, AServerThatDoesNotAnswerOnlyWhereServersComeLate) {
  const ChannelEnd no_name{ChannelStage::kResolve, "x", /*may_pass=*/true};
  ChannelEnd refused{ChannelStage::kConnect, "x"};
  refused.no_answer = NoAnswerText(ECONNREFUSED);
  const ChannelEnd login{ChannelStage::kLogin, "x"};
  for (bool late : {false, true}) {
    EXPECT_TRUE(MayRetry(no_name, late));
    EXPECT_EQ(MayRetry(refused, late), late);
    EXPECT_FALSE(MayRetry(login, late));
  }
}

TEST(NoAnswerText, IsThatOfAnAddressWithoutAServer) {
  for (int error : {ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, EHOSTDOWN, ENETUNREACH, ECONNRESET})
    EXPECT_NE(NoAnswerText(error), "") << error;
  for (int error : {0, EACCES, EPERM, EMFILE, EAFNOSUPPORT, EADDRNOTAVAIL})
    EXPECT_EQ(NoAnswerText(error), "") << error;
}

TEST(PauseBeforeRetry, GrowsToTheLongestAndStaysATenthOfTheWait) {
  using std::chrono::milliseconds, std::chrono::seconds;
  EXPECT_EQ(PauseBeforeRetry(1), milliseconds(100));
  EXPECT_EQ(PauseBeforeRetry(2), milliseconds(200));
  EXPECT_EQ(PauseBeforeRetry(4), milliseconds(800));
  EXPECT_EQ(PauseBeforeRetry(1'000'000), seconds(5));
  Duration waited{};
  for (int tries = 1; tries < 60; ++tries) {
    EXPECT_GE(PauseBeforeRetry(tries + 1), PauseBeforeRetry(tries)) << tries;
    waited += PauseBeforeRetry(tries);
    if (tries <= 12) continue;
    EXPECT_LT(PauseBeforeRetry(tries + 1), waited / 5) << tries;
  }
}

}  // namespace
}  // namespace hvd
