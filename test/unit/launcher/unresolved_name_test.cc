#include "launcher/channels/unresolved_name.h"

#include <gtest/gtest.h>

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

TEST(PauseBeforeResolving, GrowsToTheLongest) {
  using std::chrono::milliseconds;
  EXPECT_EQ(PauseBeforeResolving(1), milliseconds(100));
  EXPECT_EQ(PauseBeforeResolving(2), milliseconds(200));
  EXPECT_EQ(PauseBeforeResolving(4), milliseconds(800));
  EXPECT_EQ(PauseBeforeResolving(1000), milliseconds(800));
}

}  // namespace
}  // namespace hvd
