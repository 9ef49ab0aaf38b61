#include "launcher/doctor/pair_measurements.h"

#include <gtest/gtest.h>

#include "launcher/agent/inspection/pair_probe.h"

namespace hvd {
namespace {

using std::chrono::seconds;

bool NoneIsLost(uint32_t) { return false; }

class PairMeasurementsTest : public testing::Test {
 protected:
  // `count` hosts that all reach each other.
  void Plan(uint32_t count) {
    for (uint32_t host = 0; host < count; ++host) {
      report_.hosts.emplace_back().name = "n" + std::to_string(host);
      probed_.Add(host);
    }
    ConnectivityProbed all;
    all.addresses.assign(count, "10.0.0.1");
    for (uint32_t host = 0; host < count; ++host) probed_.Note(host, all);
    pairs_.Plan();
  }
  PairMeasured AnswerTo(const MeasurePair& question) {
    return {question.number, question.peer, "", "10.0.0.9", 5000, 1'000'000};
  }

  DoctorReport report_;
  ProbedHosts probed_;
  PairMeasurements pairs_{report_, probed_};
  const TimePoint now_{seconds(100)};
};

TEST_F(PairMeasurementsTest, EveryPairIsMeasuredOnce) {
  Plan(4);
  while (!pairs_.AllRoundsBegan()) {
    const auto questions = pairs_.BeginRound(NoneIsLost, now_);
    EXPECT_EQ(questions.size(), 4u) << "two pairs at once";
    for (const auto& [host, question] : questions) {
      EXPECT_FALSE(pairs_.RoundIsOver());
      pairs_.Receive(host, AnswerTo(question));
    }
    EXPECT_TRUE(pairs_.RoundIsOver());
  }
  ASSERT_EQ(report_.pairs.size(), 6u);
  for (const PairReport& pair : report_.pairs) {
    EXPECT_EQ(pair.trouble, "");
    EXPECT_EQ(pair.latency, std::chrono::microseconds(5));
    EXPECT_EQ(pair.a_to_b, 1e6);
    EXPECT_EQ(pair.b_to_a, 1e6);
  }
  EXPECT_TRUE(report_.all_pairs);
}

TEST_F(PairMeasurementsTest, APairWithALostHostIsNotMeasured) {
  Plan(2);
  EXPECT_TRUE(pairs_.BeginRound([](uint32_t host) { return host == 1; }, now_).empty());
  EXPECT_TRUE(pairs_.RoundIsOver());
  EXPECT_EQ(report_.pairs[0].trouble, "n1 was lost");
}

TEST_F(PairMeasurementsTest, AHostThatDoesNotReachTheOtherIsNamedWithItsReason) {
  for (const char* name : {"n0", "n1"}) report_.hosts.emplace_back().name = name;
  probed_.Add(0);
  probed_.Add(1);
  ConnectivityProbed reached, missed;
  reached.addresses = {"10.0.0.1"};
  missed.addresses = {""};
  missed.reasons = {"connection refused"};
  probed_.Note(0, reached);
  probed_.Note(1, missed);
  pairs_.Plan();
  EXPECT_TRUE(pairs_.BeginRound(NoneIsLost, now_).empty());
  EXPECT_EQ(report_.pairs[0].trouble, "n1: connection refused");
}

TEST_F(PairMeasurementsTest, AnswersThatNobodyAskedForChangeNothing) {
  Plan(3);
  const auto questions = pairs_.BeginRound(NoneIsLost, now_);
  const auto& [host, question] = questions.front();
  PairMeasured wrong = AnswerTo(question);
  wrong.number += 1;
  pairs_.Receive(host, wrong);
  wrong = AnswerTo(question);
  wrong.peer = 99;
  pairs_.Receive(host, wrong);
  EXPECT_EQ(report_.pairs[0].address_b, "");
  EXPECT_FALSE(pairs_.RoundIsOver());
}

TEST_F(PairMeasurementsTest, TheLeadingHostsReasonCounts) {
  Plan(2);
  const auto questions = pairs_.BeginRound(NoneIsLost, now_);
  ASSERT_EQ(questions.size(), 2u);
  for (const auto& [host, question] : questions) {
    PairMeasured answer = AnswerTo(question);
    answer.trouble = question.leads ? "by the leader" : "by the other";
    pairs_.Receive(host, answer);
  }
  EXPECT_EQ(report_.pairs[0].trouble, "by the leader");
}

TEST_F(PairMeasurementsTest, ALateAnswerIsGivenUpAtTheDeadline) {
  Plan(2);
  const auto questions = pairs_.BeginRound(NoneIsLost, now_);
  for (const auto& [host, question] : questions) {
    if (host == 0) pairs_.Receive(host, AnswerTo(question));
  }
  pairs_.Tick(pairs_.deadline() - std::chrono::nanoseconds(1));
  EXPECT_FALSE(pairs_.RoundIsOver());
  pairs_.Tick(pairs_.deadline());
  EXPECT_TRUE(pairs_.RoundIsOver());
  EXPECT_EQ(report_.pairs[0].trouble, "n1 did not measure it in time; is it overloaded?");
}

TEST_F(PairMeasurementsTest, GivingUpAHostEndsItsPairsAlone) {
  Plan(4);
  const auto questions = pairs_.BeginRound(NoneIsLost, now_);
  pairs_.GiveUp(0, "n0 was lost");
  EXPECT_FALSE(pairs_.RoundIsOver()) << "the other pair goes on";
  size_t given_up = 0;
  for (const PairReport& pair : report_.pairs) given_up += pair.trouble == "n0 was lost" ? 1 : 0;
  EXPECT_EQ(given_up, 1u);
  pairs_.Interrupt();
  EXPECT_TRUE(pairs_.RoundIsOver());
}

}  // namespace
}  // namespace hvd
