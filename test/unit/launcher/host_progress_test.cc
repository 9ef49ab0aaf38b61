// One host on its way to an agent that is ready.
#include "launcher/job/host_records/host_progress.h"

#include <gtest/gtest.h>

#include <chrono>

namespace hvd {
namespace {

using std::chrono::seconds;

constexpr Duration kLimit = seconds(20);

TimePoint At(int second) { return TimePoint() + seconds(1000 + second); }

HostProgress OnItsWay() {
  HostProgress progress;
  progress.Begin(At(0));
  return progress;
}

TEST(HostProgress, IsNamedOnceAndIsOverLater) {
  HostProgress progress = OnItsWay();
  EXPECT_EQ(progress.NextDue(kLimit), At(10));
  EXPECT_FALSE(progress.IsSlow(At(9)));
  EXPECT_TRUE(progress.IsSlow(At(10)));
  EXPECT_EQ(progress.PopSlow(), "resolving its name for 10 s");
  EXPECT_FALSE(progress.IsSlow(At(11)));
  EXPECT_EQ(progress.NextDue(kLimit), At(20));
  EXPECT_FALSE(progress.IsOver(kLimit, At(19)));
  EXPECT_TRUE(progress.IsOver(kLimit, At(20)));
  EXPECT_EQ(progress.OverText(kLimit),
            "it took longer than 20 s; does the name server answer? --stage-timeouts resolve=N "
            "allows more seconds");
}

TEST(HostProgress, EachStageBeginsAnew) {
  HostProgress progress = OnItsWay();
  progress.PopSlow();
  progress.Enter(HostStage::kLogin, At(15));
  EXPECT_EQ(progress.NextDue(kLimit), At(25));
  EXPECT_TRUE(progress.IsSlow(At(25))) << "it is named again";
  EXPECT_EQ(progress.StateText(), "still logging in");
}

TEST(HostProgress, AShortLimitComesBeforeTheName) {
  EXPECT_EQ(OnItsWay().NextDue(seconds(3)), At(3));
}

TEST(HostProgress, WhatIsReadyIsNeverDue) {
  for (HostStage stage : {HostStage::kThere, HostStage::kReady}) {
    HostProgress progress = OnItsWay();
    progress.Enter(stage, At(1));
    EXPECT_EQ(progress.NextDue({}), TimePoint::max());
    EXPECT_FALSE(progress.IsOver({}, At(1000)));
    EXPECT_FALSE(progress.IsSlow(At(1000)));
    EXPECT_EQ(progress.StateText(), "ready");
  }
}

TEST(HostProgress, BytesOfHvdrunThatLeaveCountAsProgress) {
  HostProgress progress = OnItsWay();
  progress.Enter(HostStage::kBundle, At(1));
  EXPECT_TRUE(progress.IsSlow(At(2))) << "one that is sent hvdrun is named soon";
  EXPECT_EQ(progress.PopSlow(), "");
  progress.Enter(HostStage::kBundle, At(15));
  EXPECT_FALSE(progress.IsSlow(At(30))) << "and not again with every byte";
  EXPECT_FALSE(progress.IsOver(kLimit, At(34)));
  EXPECT_TRUE(progress.IsOver(kLimit, At(35)));
}

const HostTrouble kRefused{HostStage::kConnect, "Connection refused"};

TEST(HostProgress, TriesInVainHaveOneLimit) {
  HostProgress progress = OnItsWay();
  progress.Enter(HostStage::kConnect, At(5));
  EXPECT_FALSE(progress.tried_again());
  progress.Trouble(kRefused, At(5));
  EXPECT_TRUE(progress.tried_again());
  EXPECT_EQ(progress.trouble(), "Connection refused");
  EXPECT_TRUE(progress.IsSlow(At(7))) << "in trouble it is named sooner";
  EXPECT_EQ(progress.PopSlow(), "connecting for 2 s");
  progress.Enter(HostStage::kConnect, At(14));
  progress.Trouble(kRefused, At(5));
  EXPECT_TRUE(progress.IsOver(kLimit, At(25))) << "counted from the first try";
  EXPECT_EQ(progress.OverText(kLimit),
            "Connection refused; it was tried again for 20 s, and --stage-timeouts connect=N "
            "allows more seconds");
}

TEST(HostProgress, ATryThatComesFurtherForgetsTheTrouble) {
  HostProgress progress = OnItsWay();
  progress.Trouble(kRefused, At(5));
  progress.Enter(HostStage::kLogin, At(3));
  EXPECT_FALSE(progress.tried_again());
  EXPECT_EQ(progress.trouble(), "");
}

TEST(HostProgress, AServerThatDoesNotAnswerHasItsWholeLimitOnceTheNameIsKnown) {
  HostProgress progress = OnItsWay();
  const HostTrouble no_name{HostStage::kResolve, "no answer"};
  const HostTrouble refused{HostStage::kConnect, "none to 10.0.0.1", "the connection was refused"};
  progress.Trouble(no_name, At(1));
  EXPECT_EQ(progress.PopSlow(), "no DNS answer yet for 2 s");
  progress.Trouble(refused, At(19));
  EXPECT_FALSE(progress.IsOver(kLimit, At(38)));
  EXPECT_FALSE(progress.IsSlow(At(20)));
  EXPECT_TRUE(progress.IsSlow(At(21))) << "it is named again, with the new reason";
  EXPECT_EQ(progress.PopSlow(), "no sshd yet for 2 s: the connection was refused");
  progress.Trouble(no_name, At(30));
  progress.Trouble(refused, At(35));
  EXPECT_FALSE(progress.IsSlow(At(37))) << "to and fro is no progress";
  EXPECT_TRUE(progress.IsOver(kLimit, At(39)));
}

TEST(HostProgress, AConnectionThatIsClosedAtOnceIsNoProgress) {
  HostProgress progress = OnItsWay();
  const HostTrouble closed{HostStage::kConnect, "it closed the connection", "it closed it"};
  for (int second = 0; second < 19; ++second) {
    progress.Enter(HostStage::kKeyExchange, At(second));
    progress.Trouble(closed, At(second));
  }
  EXPECT_TRUE(progress.IsOver(kLimit, At(20)));
}

TEST(HostProgress, ANameWithoutAnAnswerIsSaidSo) {
  HostProgress progress = OnItsWay();
  progress.Trouble({HostStage::kResolve, "no answer"}, At(0));
  EXPECT_EQ(progress.PopSlow(), "no DNS answer yet for 2 s");
}

TEST(HostProgress, AFailureIsFinal) {
  HostProgress progress = OnItsWay();
  progress.Enter(HostStage::kLogin, At(1));
  progress.Fail("no key was accepted");
  progress.Fail("another reason");
  progress.Enter(HostStage::kReady, At(2));
  progress.Trouble({HostStage::kConnect, "a third one"}, At(2));
  EXPECT_TRUE(progress.failed());
  EXPECT_EQ(progress.failed_in(), HostStage::kLogin);
  EXPECT_EQ(progress.StateText(), "logging in: no key was accepted");
  EXPECT_EQ(progress.NextDue(kLimit), TimePoint::max());
}

TEST(HostProgress, TimeAwayDoesNotCount) {
  HostProgress progress = OnItsWay();
  progress.Shift(seconds(100));
  EXPECT_EQ(progress.NextDue(kLimit), At(110));
}

}  // namespace
}  // namespace hvd
