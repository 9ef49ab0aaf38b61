// How a coroutine waits that opens a channel: for a condition, within the time of its stage, until
// somebody ends it.
#include "launcher/channels/ssh/stage_wait.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <functional>
#include <optional>

namespace hvd {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

class StageWaitTest : public testing::Test {
 protected:
  // The timer goes by the machine's clock: its times are never reached.
  StageWaitTest() { clock_.Advance(std::chrono::hours(1'000'000)); }
  // Runs until the coroutine has ended or waits.
  void Start(std::function<asio::awaitable<bool>()> wait) {
    asio::co_spawn(
        io_, [this, wait]() -> asio::awaitable<void> { result_ = co_await wait(); },
        asio::detached);
    io_.restart();
    io_.poll();
  }
  void Wake() {
    wait_.Wake();
    io_.poll();
  }

  asio::io_context io_;
  ManualClock clock_;
  std::vector<ChannelStage> entered_;
  StageWait wait_{io_,
                  clock_,
                  seconds(10),
                  {[this](ChannelStage stage) { entered_.push_back(stage); },
                   [](ChannelStage) { return std::string("it took too long"); }}};
  bool ready_ = false;
  std::optional<bool> result_;
  const std::function<asio::awaitable<bool>()> until_ = [this] {
    return wait_.Until([this] { return ready_; });
  };
};

TEST_F(StageWaitTest, GoesOnWhenTheConditionIsTrue) {
  wait_.Enter(ChannelStage::kLogin);
  Start(until_);
  Wake();
  EXPECT_EQ(result_, std::nullopt) << "woken too early";
  ready_ = true;
  Wake();
  EXPECT_EQ(result_, true);
  EXPECT_THAT(entered_, ElementsAre(ChannelStage::kLogin));
  EXPECT_EQ(wait_.stage(), ChannelStage::kLogin);
}

TEST_F(StageWaitTest, AStageThatLastsTooLongIsAFailure) {
  wait_.Enter(ChannelStage::kLogin);
  Start(until_);
  clock_.Advance(seconds(10));
  Wake();
  EXPECT_EQ(result_, false);
  EXPECT_TRUE(wait_.failed());
  EXPECT_EQ(wait_.reason(), "it took too long");
}

TEST_F(StageWaitTest, EachStageHasItsTime) {
  wait_.Enter(ChannelStage::kConnect);
  clock_.Advance(seconds(9));
  wait_.Enter(ChannelStage::kLogin);
  clock_.Advance(seconds(9));
  Start(until_);
  EXPECT_EQ(result_, std::nullopt);
  wait_.EndAt(clock_.Now());
  Wake();
  EXPECT_EQ(result_, false);
}

TEST_F(StageWaitTest, AWaitOfItsOwnTimeIsNoFailure) {
  Start([this] { return wait_.WaitFor([this] { return ready_; }, wait_.In(seconds(1))); });
  clock_.Advance(seconds(1));
  Wake();
  EXPECT_EQ(result_, false);
  EXPECT_FALSE(wait_.failed());
  EXPECT_EQ(wait_.In(Duration::max()), TimePoint::max());
}

TEST_F(StageWaitTest, AnAbortEndsTheWaitsAndTheStages) {
  wait_.Enter(ChannelStage::kConnect);
  Start(until_);
  wait_.Abort("it was cut");
  io_.poll();
  EXPECT_EQ(result_, false);
  EXPECT_TRUE(wait_.aborted());
  EXPECT_FALSE(wait_.Fail("later")) << "Fail is always false";
  wait_.Abort("again");
  EXPECT_EQ(wait_.reason(), "it was cut");
  wait_.Enter(ChannelStage::kLogin);
  EXPECT_EQ(wait_.stage(), ChannelStage::kConnect);
  wait_.ForgetAbort();
  ready_ = true;
  Start(until_);
  EXPECT_EQ(result_, true);
}

TEST_F(StageWaitTest, TheFirstReasonStays) {
  wait_.Fail("the first");
  wait_.Fail("the second");
  wait_.Abort("the third");
  EXPECT_EQ(wait_.reason(), "the first");
}

}  // namespace
}  // namespace hvd
