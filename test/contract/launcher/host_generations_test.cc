// The ranks of one host and their worlds, over real links: the fate of a generation when links end
// while it is handed out.
#include "launcher/generation/host_generations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kKey = "key";

class RecordingObserver final : public HostGenerationsObserver {
 public:
  Status OnHello(const LinkHello&) override { return Status::Ok(); }
  void OnLayout(uint32_t, std::vector<RankRun>) override {}
  void OnJoined(uint32_t) override {}
  void OnPage(const std::vector<uint32_t>&) override {}
  void OnLeft(uint32_t, const LeftRank&) override {}
  void OnLost(uint32_t slot, const LostRank& one) override {
    lost.push_back(slot);
    reasons.push_back(one.reason);
  }
  void OnLinkClosed(uint32_t) override {}
  void OnPut(const LinkPut&) override {}
  void OnWanted(const LinkGet&) override {}

  std::vector<uint32_t> lost;  // slots
  std::vector<std::string> reasons;
};

class HostGenerationsLinks : public testing::Test {
 protected:
  static constexpr uint32_t kSlots = 2;

  static HostWorld World() {
    HostWorld world;
    world.host = "a";
    world.size = kSlots;
    world.slots = {{0, 0, 0, kSlots, 0, 1}, {1, 0, 1, kSlots, 0, 1}};
    world.layout = {{0, 0, kSlots}};
    return world;
  }

  HostGenerationsLinks() {
    const std::string name = "hvd-test-generations-" + std::to_string(::getpid());
    EXPECT_TRUE(generations_.links().Listen(name).ok());
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      workers_[slot] = UniqueFd(ConnectLink(name)->Release());
      LinkHello hello;
      hello.job_key = kKey;
      hello.slot = slot;
      EXPECT_TRUE(SendLink(workers_[slot].get(), hello).ok());
      EXPECT_TRUE(SendLink(workers_[slot].get(), LinkJoin{}).ok());
      Turn();
      EXPECT_TRUE(generations_.slots().waiting(slot));
    }
  }

  void Turn() {
    io_.restart();
    io_.run_for(std::chrono::milliseconds(20));
  }
  // The next message to the slot's worker closes its link: it has not read for too long.
  void FillQueue(uint32_t slot) {
    // Longer than what the kernel keeps of a link, and then as much as the agent does.
    const LinkValue value{0, "key", std::string(3000, 'x')};
    int socket = 0;
    while (generations_.links().queued(slot) == 0) {
      generations_.links().Send(slot, value);
      ASSERT_LT(++socket, 10'000);
    }
    while (generations_.links().queued(slot) < LinkServer::kMostQueued)
      generations_.links().Send(slot, value);
  }

  asio::io_context io_;
  RecordingObserver observer_;
  HostGenerations generations_{io_, observer_, World(), kKey, ""};
  UniqueFd workers_[kSlots];
};

TEST_F(HostGenerationsLinks, AGenerationWhoseOnlyRankDoesNotReadIsOver) {
  FillQueue(0);
  EXPECT_TRUE(generations_.Begin(1, {0}).ok());
  Turn();
  EXPECT_THAT(observer_.lost, ElementsAre(0));
  EXPECT_FALSE(generations_.slots().in_use());
  EXPECT_EQ(generations_.page().get(), nullptr);
}

TEST_F(HostGenerationsLinks, ARankThatDoesNotReadBreaksTheGenerationOfTheOthers) {
  FillQueue(0);
  EXPECT_TRUE(generations_.Begin(1, {0, 1}).ok());
  Turn();
  EXPECT_THAT(observer_.lost, ElementsAre(0));
  ASSERT_NE(generations_.page().get(), nullptr);
  EXPECT_TRUE(generations_.page().get()->broken());
  // The other one has the generation before it hears that it is over.
  std::vector<std::string> heard;
  for (;;) {
    Result<ReceivedLink> received = ReceiveLink(workers_[1].get(), false);
    if (!received.ok()) break;
    if (std::holds_alternative<LinkGeneration>(received->message)) heard.push_back("generation");
    if (const auto* broken = std::get_if<LinkBroken>(&received->message)) {
      EXPECT_THAT(broken->reason, HasSubstr("rank 0"));
      heard.push_back("broken");
    }
  }
  EXPECT_THAT(heard, ElementsAre("generation", "broken"));
}

TEST_F(HostGenerationsLinks, RanksThatAllDoNotReadLeaveNothing) {
  FillQueue(0);
  FillQueue(1);
  EXPECT_TRUE(generations_.Begin(1, {0, 1}).ok());
  Turn();
  EXPECT_THAT(observer_.lost, testing::UnorderedElementsAre(0, 1));
  EXPECT_EQ(generations_.page().get(), nullptr);
}

TEST_F(HostGenerationsLinks, ARankThatDoesNotReadIsLostWhereverItIs) {
  FillQueue(1);
  EXPECT_TRUE(generations_.Begin(1, {0, 1}).ok());
  EXPECT_EQ(observer_.lost.size(), 0U) << "whoever sends is not called back";
  Turn();
  EXPECT_THAT(observer_.lost, ElementsAre(1));
  EXPECT_THAT(observer_.reasons[0], HasSubstr("died in the middle of the job"));
}

// The last message of a worker is heard although its link is closed.
TEST_F(HostGenerationsLinks, AGoodbyeBeforeTheEndOfALinkIsHeard) {
  EXPECT_TRUE(generations_.Begin(1, {0, 1}).ok());
  Turn();
  EXPECT_TRUE(SendLink(workers_[0].get(), LinkGoodbye{1, 0}).ok());
  FillQueue(0);
  generations_.links().Send(0, LinkBroken{1, "one too many"});
  Turn();
  EXPECT_THAT(observer_.lost, ElementsAre());
  EXPECT_FALSE(generations_.links().connected(0));
}

}  // namespace
}  // namespace hvd
