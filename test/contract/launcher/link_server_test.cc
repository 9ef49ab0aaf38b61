// The work of an agent for its workers' links, over real sockets.
#include "launcher/generation/link_server.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <asio/io_context.hpp>

namespace hvd {
namespace {

class SilentObserver final : public LinkObserver {
 public:
  Status OnHello(const LinkHello&) override { return Status::Ok(); }
  void OnLayout(uint32_t, std::vector<RankRun>) override {}
  void OnJoin(uint32_t) override {}
  void OnGoodbye(uint32_t, const LinkGoodbye&) override {}
  void OnLinkEnd(uint32_t) override { ++ended; }
  void OnPut(uint32_t, LinkPut) override {}
  void OnGet(uint32_t, LinkGet) override {}
  int ended = 0;
};

class Links : public testing::Test {
 protected:
  Links() {
    EXPECT_TRUE(server_.Listen(name_).ok());
    for (uint32_t slot = 0; slot < 2; ++slot) {
      workers_[slot] = UniqueFd(ConnectLink(name_)->Release());
      LinkHello hello;
      hello.version = kLinkVersion;
      hello.job_key = "key";
      hello.slot = slot;
      EXPECT_TRUE(SendLink(workers_[slot].get(), hello).ok());
      Turn();
    }
  }

  void Turn() {
    io_.restart();
    io_.run_for(std::chrono::milliseconds(20));
  }

  LinkSegment Ask(uint32_t slot, const LinkMessage& question) {
    EXPECT_TRUE(SendLink(workers_[slot].get(), question).ok());
    Turn();
    Result<ReceivedLink> answer = ReceiveLink(workers_[slot].get(), false);
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    return answer.ok() ? std::get<LinkSegment>(answer->message) : LinkSegment{};
  }

  asio::io_context io_;
  SilentObserver observer_;
  LinkServer server_{io_, observer_, 2, "key"};
  const std::string name_ = "hvd-test-links-" + std::to_string(::getpid());
  UniqueFd workers_[2];
};

TEST_F(Links, ASegmentOutlivesItsOwnerUntilNobodyNeedsItAnyMore) {
  const uint32_t segment = Ask(0, LinkAllocate{4096}).segment;
  workers_[0].Reset();
  Turn();
  ASSERT_EQ(observer_.ended, 1);
  EXPECT_EQ(Ask(1, LinkFetch{segment}).error, "")
      << "rank 1 was slow to look at what rank 0 gave it";
  server_.ForgetOwnerless();
  EXPECT_NE(Ask(1, LinkFetch{segment}).error, "");
}

TEST_F(Links, ASegmentWithAnOwnerStays) {
  const uint32_t segment = Ask(0, LinkAllocate{4096}).segment;
  server_.ForgetOwnerless();
  EXPECT_EQ(Ask(1, LinkFetch{segment}).error, "");
}

}  // namespace
}  // namespace hvd
