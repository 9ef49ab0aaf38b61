#include "launcher/detached/steered_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

HostAnswer ThreeHosts() {
  HostAnswer answer;
  answer.hosts = {{.host = "a", .slots = 2}, {.host = "b", .slots = 2}, {.host = "c", .slots = 2}};
  answer.trouble = "it is late";
  return answer;
}

std::vector<std::string> Listed(const Steering& steering) {
  std::vector<std::string> listed;
  for (const HostSlots& host : Steered(ThreeHosts(), steering).hosts)
    listed.push_back(host.host + ":" + std::to_string(host.slots));
  return listed;
}

TEST(Steered, DrainsAndLimits) {
  EXPECT_EQ(Steered(ThreeHosts(), {}), ThreeHosts());
  EXPECT_THAT(Listed({.limit = 0, .drained = {"b", "nosuch"}}), ElementsAre("a:2", "c:2"));
  EXPECT_THAT(Listed({.limit = 3, .drained = {}}), ElementsAre("a:2", "b:1"));
  EXPECT_THAT(Listed({.limit = 3, .drained = {"a"}}), ElementsAre("b:2", "c:1"));
  EXPECT_THAT(Listed({.limit = 99, .drained = {}}), ElementsAre("a:2", "b:2", "c:2"));
  EXPECT_THAT(Listed({.limit = 1, .drained = {"a", "b", "c"}}), IsEmpty());
  EXPECT_EQ(Steered(ThreeHosts(), {.limit = 1, .drained = {}}).trouble, "it is late");
}

TEST(Steered, OversubscriptionIsLimitedToo) {
  HostAnswer answer;
  answer.hosts = {{.host = "a", .slots = 4, .max_slots = 8}};
  EXPECT_EQ(Steered(answer, {.limit = 3, .drained = {}}).hosts[0].max_slots, 3u);
}

TEST(Steering, IsReadAsItWasWritten) {
  const Steering steering{.limit = 4, .drained = {"node1", "node2"}};
  EXPECT_EQ(ParseSteering(SteeringText(steering)), steering);
  EXPECT_EQ(ParseSteering(""), Steering{});
  EXPECT_EQ(ParseSteering("nonsense\nlimit x\nlimit 3"), (Steering{.limit = 3, .drained = {}}));
}

}  // namespace
}  // namespace hvd
