#include <gtest/gtest.h>

#include "launcher/elastic_hosts/host_watch.h"

namespace hvd {
namespace {

const std::vector<HostSlots> kA = {{.host = "a", .slots = 1}};
const std::vector<HostSlots> kB = {{.host = "b", .slots = 1}};

TEST(AnswerHistory, TellsTheFirstAnswerAndThenChangesAlone) {
  AnswerHistory history;
  EXPECT_EQ(history.Good({}), (HostAnswer{{}, ""}));
  EXPECT_EQ(history.Good({}), std::nullopt);
  EXPECT_EQ(history.Good(kA), (HostAnswer{kA, ""}));
  EXPECT_EQ(history.Good(kA), std::nullopt);
  EXPECT_EQ(history.Good(kB), (HostAnswer{kB, ""}));
}

TEST(AnswerHistory, TellsEachKindOfTroubleOnceWithTheLastGoodList) {
  AnswerHistory history;
  EXPECT_EQ(history.Bad({"exit 1", "it ended"}), (HostAnswer{{}, "it ended"}));
  EXPECT_EQ(history.Bad({"exit 1", "it ended at 9:01"}), std::nullopt);
  EXPECT_EQ(history.Good(kA), (HostAnswer{kA, ""}));
  EXPECT_EQ(history.Bad({"exit 1", "it ended"}), (HostAnswer{kA, "it ended"}));
  EXPECT_EQ(history.Bad({"exit 2", "it ended too"}), (HostAnswer{kA, "it ended too"}));
  EXPECT_EQ(history.Bad({"exit 2", "it ended too"}), std::nullopt);
  // It is over, though the hosts are the same.
  EXPECT_EQ(history.Good(kA), (HostAnswer{kA, ""}));
  EXPECT_EQ(history.Bad({"exit 2", "it ended too"})->hosts, kA);
  EXPECT_EQ(history.Good(kB), (HostAnswer{kB, ""}));
}

TEST(AnswerHistory, HandsOnThatAskingAgainCannotHelp) {
  AnswerHistory history;
  EXPECT_FALSE(history.Bad({"exit 1", "it ended"})->hopeless);
  EXPECT_TRUE(history.Bad({"exit 127", "not found", true})->hopeless);
}

}  // namespace
}  // namespace hvd
