// The settings about the network between hosts.
#include "launcher/driver/network_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParsePortRange, TakesOnePortARangeOrNone) {
  struct Row {
    const char* text;
    uint16_t first, last;
  };
  for (const Row& row : {Row{"", 0, 0}, {"4000", 4000, 4000}, {"4000-4999", 4000, 4999}}) {
    Result<PortRange> range = ParsePortRange(row.text);
    ASSERT_TRUE(range.ok()) << row.text;
    EXPECT_EQ(range->first, row.first) << row.text;
    EXPECT_EQ(range->last, row.last) << row.text;
  }
}

TEST(ParsePortRange, QuotesWhatIsNoRange) {
  for (const char* bad : {"x", "0", "1-", "-1", "70000", "5-4", "1-2-3", " 1"}) {
    Result<PortRange> range = ParsePortRange(bad);
    ASSERT_FALSE(range.ok()) << bad;
    EXPECT_THAT(range.status().message(), HasSubstr(bad));
    EXPECT_THAT(range.status().message(), HasSubstr("try --port-range 40000-40999"));
  }
}

TEST(ReadNetwork, LetsAnAgentGreetWithinTheStartTimeoutUnlessItsStageHasALimit) {
  Settings settings;
  settings.start_timeout_seconds = 77;
  EXPECT_EQ(ReadNetwork(settings, false)->stage_limits.at(HostStage::kHello),
            Duration(seconds(77)));
  settings.stage_timeouts = "hello=5";
  EXPECT_EQ(ReadNetwork(settings, false)->stage_limits.at(HostStage::kHello), Duration(seconds(5)));
}

TEST(ReadNetwork, GivesUnknownNamesThreeSecondsWhereTheyAreNotLate) {
  Settings settings;
  EXPECT_EQ(ReadNetwork(settings, false)->stage_limits.unknown_name, Duration(seconds(3)));
  EXPECT_EQ(ReadNetwork(settings, true)->stage_limits.unknown_name, std::nullopt);
  settings.stage_timeouts = "resolve=9";
  EXPECT_EQ(ReadNetwork(settings, false)->stage_limits.unknown_name, std::nullopt);
}

TEST(ReadNetwork, WaitsForPodsThatComeMinutesLate) {
  Settings settings;
  settings.start_timeout_seconds = 30;  // the default
  for (const HostStage stage : {HostStage::kResolve, HostStage::kConnect}) {
    EXPECT_EQ(ReadNetwork(settings, true)->stage_limits.at(stage), Duration(seconds(600)));
    EXPECT_LT(ReadNetwork(settings, false)->stage_limits.at(stage), Duration(seconds(30)));
  }
  settings.start_timeout_seconds = 60;
  EXPECT_EQ(ReadNetwork(settings, true)->stage_limits.at(HostStage::kResolve),
            Duration(seconds(60)));
  settings.stage_timeouts = "resolve=9,connect=8";
  EXPECT_EQ(ReadNetwork(settings, true)->stage_limits.at(HostStage::kConnect),
            Duration(seconds(8)));
}

TEST(ReadNetwork, SplitsTheInterfacesAndRefusesABadRangeOfAddresses) {
  Settings settings;
  settings.port_range = "4000-4001";
  settings.network_interfaces = "eth0,10.0.0.0/8";
  Result<NetworkSettings> network = ReadNetwork(settings, false);
  ASSERT_TRUE(network.ok());
  EXPECT_THAT(network->interfaces, ElementsAre("eth0", "10.0.0.0/8"));
  EXPECT_EQ(network->ports.last, 4001);
  settings.network_interfaces = "10.0.0.0/99";
  EXPECT_THAT(ReadNetwork(settings, false).status().message(), HasSubstr("--network-interfaces: "));
}

}  // namespace
}  // namespace hvd
