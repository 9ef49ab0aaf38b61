// A channel whose tries end at once until the host has a name.
#include "launcher/channels/retrying_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "test/support/deadline.h"

namespace hvd {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

const ChannelEnd kNoName{ChannelStage::kResolve, "it has no name yet", true};

// The course of one try.
struct Script {
  std::vector<ChannelStage> stages;
  std::optional<ChannelEnd> end;  // none: it runs, and says what it is told
  size_t room = SIZE_MAX;         // how much it takes at once
  std::string first_words;        // before anything is written to it
};

class SimulatedTry final : public HostChannel {
 public:
  SimulatedTry(asio::io_context& io, Script script, std::string* got)
      : io_(io), script_(std::move(script)), got_(got) {}

  void Open(ChannelObserver& observer) override {
    observer_ = &observer;
    for (ChannelStage stage : script_.stages) observer_->OnStage(stage);
    if (script_.end) Later([this] { observer_->OnEnd(*script_.end); });
    if (!script_.first_words.empty()) Later([this] { observer_->OnBytes(script_.first_words); });
  }
  size_t Write(std::string_view bytes) override {
    const size_t count = std::min(bytes.size(), script_.room);
    if (got_ != nullptr) got_->append(bytes.substr(0, count));
    if (count < bytes.size()) Later([this] { observer_->OnWritable(); });
    return count;
  }
  void Close() override {
    Later([this] { observer_->OnEnd({ChannelStage::kClosed, ""}); });
  }
  void Kill() override {
    Later([this] { observer_->OnEnd({ChannelStage::kRunning, "killed"}); });
  }

 private:
  void Later(const std::function<void()>& what) {
    asio::post(io_, [alive = std::weak_ptr<int>(alive_), what] {
      if (!alive.expired()) what();
    });
  }
  asio::io_context& io_;
  Script script_;
  std::string* got_;
  ChannelObserver* observer_ = nullptr;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

struct Seen final : ChannelObserver {
  void OnStage(ChannelStage stage) override { stages.push_back(stage); }
  void OnBytes(std::string_view bytes) override { got += bytes; }
  void OnWritable() override {
    if (on_writable) on_writable();
  }
  void OnTrouble(const ChannelEnd& so_far) override {
    troubles.push_back(so_far.reason);
    troubled_in = so_far.stage;
  }
  void OnEnd(const ChannelEnd& the_end) override {
    ++ends;
    end = the_end;
  }
  std::vector<ChannelStage> stages;
  std::vector<std::string> troubles;
  ChannelStage troubled_in = ChannelStage::kClosed;
  std::string got;
  std::function<void()> on_writable;
  ChannelEnd end;
  int ends = 0;
};

class RetryingChannelTest : public ::testing::Test {
 protected:
  // Tries after the last one do as the last.
  void Open(std::vector<Script> scripts, bool servers_come_late = false) {
    auto make = [this, scripts] {
      const size_t number = std::min<size_t>(tries++, scripts.size() - 1);
      return std::make_unique<SimulatedTry>(io, scripts[number], &far_end.emplace_back());
    };
    channel = std::make_unique<RetryingChannel>(io, make, servers_come_late);
    far_end.reserve(1000);  // the channels write into it
    channel->Open(seen);
  }
  template <typename Condition>
  bool RunUntil(Condition condition) {
    const TimePoint deadline = SteadyNow() + kDeadline;
    while (!condition() && SteadyNow() < deadline) {
      io.restart();
      io.run_one_for(std::chrono::milliseconds(50));
    }
    return condition();
  }

  asio::io_context io{1};
  Seen seen;
  size_t tries = 0;
  std::vector<std::string> far_end;  // by try: what it was given
  std::unique_ptr<RetryingChannel> channel;
};

const Script kUnknown{{ChannelStage::kResolve}, kNoName};

TEST_F(RetryingChannelTest, ANameThatIsKnownInTheEndIsReached) {
  Open({kUnknown,
        kUnknown,
        kUnknown,
        {{ChannelStage::kResolve, ChannelStage::kLogin, ChannelStage::kRunning},
         {},
         SIZE_MAX,
         "hi"}});
  ASSERT_TRUE(RunUntil([&] { return seen.got == "hi"; }));
  EXPECT_EQ(seen.ends, 0);
  EXPECT_THAT(seen.troubles, ElementsAre(kNoName.reason, kNoName.reason, kNoName.reason));
  EXPECT_THAT(seen.stages,
              ElementsAre(ChannelStage::kResolve, ChannelStage::kLogin, ChannelStage::kRunning))
      << "a try in vain is no way back";
  channel->Close();
  ASSERT_TRUE(RunUntil([&] { return seen.ends > 0; }));
  EXPECT_EQ(seen.end.stage, ChannelStage::kClosed);
}

// The ssh program takes what it is given before it knows whether there is a host.
TEST_F(RetryingChannelTest, WhatAFormerTryTookIsWrittenAgain) {
  const Script last{{ChannelStage::kConnect, ChannelStage::kRunning}, {}, 3};
  Open({{{ChannelStage::kConnect}, kNoName}, kUnknown, last});
  EXPECT_EQ(channel->Write("0123456789"), 10u);
  ASSERT_TRUE(RunUntil([&] { return far_end.size() == 3 && far_end[2].size() >= 10; }));
  size_t sent = 0;
  const std::string more = "abcdef";
  seen.on_writable = [&] { sent += channel->Write(std::string_view(more).substr(sent)); };
  seen.on_writable();
  ASSERT_TRUE(RunUntil([&] { return sent == more.size(); }));
  EXPECT_THAT(far_end, ElementsAre("0123456789", "0123456789", "0123456789abcdef"));
}

TEST_F(RetryingChannelTest, NothingIsLostWhenTheHostSpeaksBeforeAllWasWrittenAgain) {
  const Script last{{ChannelStage::kConnect, ChannelStage::kRunning}, {}, 3, "welcome"};
  Open({kUnknown, last});
  EXPECT_EQ(channel->Write("0123456789"), 10u);
  ASSERT_TRUE(RunUntil([&] { return seen.got == "welcome" && far_end[1].size() >= 10; }));
  EXPECT_EQ(channel->Write("!"), 1u);
  EXPECT_EQ(far_end[1], "0123456789!");
}

TEST_F(RetryingChannelTest, AnyOtherEndIsTheEnd) {
  Open({kUnknown, {{ChannelStage::kConnect}, ChannelEnd{ChannelStage::kConnect, "refused"}}});
  ASSERT_TRUE(RunUntil([&] { return seen.ends > 0; }));
  EXPECT_EQ(seen.end.reason, "refused");
  EXPECT_EQ(tries, 2u);
}

TEST_F(RetryingChannelTest, AServerThatDoesNotAnswerIsTriedAgainOnlyWhereServersComeLate) {
  ChannelEnd refused{ChannelStage::kConnect, "refused"}, closed{ChannelStage::kKeyExchange, "shut"};
  refused.no_answer = closed.no_answer = "none";
  const std::vector<Script> scripts = {
      {{ChannelStage::kConnect}, refused},
      {{ChannelStage::kConnect, ChannelStage::kKeyExchange}, closed},
      {{ChannelStage::kConnect, ChannelStage::kKeyExchange, ChannelStage::kHostKey},
       ChannelEnd{ChannelStage::kHostKey, "another key"}}};
  Open(scripts, /*servers_come_late=*/true);
  ASSERT_TRUE(RunUntil([&] { return seen.ends > 0; }));
  EXPECT_EQ(seen.end.reason, "another key");
  EXPECT_THAT(seen.troubles, ElementsAre("refused", "shut"));
  EXPECT_EQ(seen.troubled_in, ChannelStage::kConnect);
  EXPECT_THAT(seen.stages, ElementsAre(ChannelStage::kConnect, ChannelStage::kHostKey))
      << "a connection that is closed at once is no progress";
  seen = Seen();
  tries = 0;
  Open(scripts);
  ASSERT_TRUE(RunUntil([&] { return seen.ends > 0; }));
  EXPECT_EQ(seen.end.reason, "refused");
  EXPECT_EQ(tries, 1u);
}

TEST_F(RetryingChannelTest, KilledOrClosedBetweenTriesItEndsOnce) {
  for (bool kill : {false, true}) {
    seen = Seen();
    Open({kUnknown});
    ASSERT_TRUE(RunUntil([&] { return seen.troubles.size() == 2; }));
    kill ? channel->Kill() : channel->Close();
    channel->Close();
    ASSERT_TRUE(RunUntil([&] { return seen.ends > 0; }));
    io.restart();
    io.run();  // nothing is left to do
    EXPECT_EQ(seen.ends, 1);
    EXPECT_THAT(seen.troubles, Each(kNoName.reason));
  }
}

TEST_F(RetryingChannelTest, ItMayGoBetweenTries) {
  Open({kUnknown});
  ASSERT_TRUE(RunUntil([&] { return seen.troubles.size() == 2; }));
  channel.reset();
  io.restart();
  io.run();
  EXPECT_EQ(seen.ends, 0);
}

}  // namespace
}  // namespace hvd
