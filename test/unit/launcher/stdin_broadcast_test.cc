// How much of hvdrun's stdin may be on its way to the ranks that read it.
#include "launcher/driver/services/stdin_broadcast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kWindow = StdinBroadcast::kWindow;

Plan ThreeHosts() {  // the last one has no rank
  Plan plan;
  plan.hosts = {"a", "b", "c"};
  plan.ranks = {{0, 0, 0, 1, 0, 2}, {1, 1, 0, 1, 1, 2}};
  return plan;
}

TEST(HostsThatReadStdin, AreThoseOfTheRanksThatReadIt) {
  EXPECT_THAT(HostsThatReadStdin(ThreeHosts(), StdinTo::kNone), IsEmpty());
  EXPECT_THAT(HostsThatReadStdin(ThreeHosts(), StdinTo::kRank0), ElementsAre(0));
  EXPECT_THAT(HostsThatReadStdin(ThreeHosts(), StdinTo::kAll), ElementsAre(0, 1));
  EXPECT_THAT(HostsThatReadStdin(Plan(), StdinTo::kAll), IsEmpty());
}

TEST(StdinBroadcast, ReadsOnWhenTheSlowestHostHasTakenSomething) {
  StdinBroadcast input({0, 1});
  EXPECT_THAT(input.readers(), ElementsAre(0, 1));
  input.NoteSent(100);
  EXPECT_EQ(*input.NoteRead(0, 100), 0U) << "host 1 has taken nothing";
  EXPECT_EQ(*input.NoteRead(1, 30), 30U);
  EXPECT_EQ(*input.NoteRead(1, 70), 70U);
  EXPECT_EQ(*input.NoteRead(1, 0), 0U);
}

TEST(StdinBroadcast, KeepsAtMostAWindowOnTheWay) {
  StdinBroadcast input({0});
  uint64_t allowed = kWindow, sent = 0, taken = 0;
  for (int i = 0; i < 10; ++i) {
    input.NoteSent(allowed - sent);
    sent = allowed;
    allowed += *input.NoteRead(0, 1000);
    taken += 1000;
    EXPECT_EQ(allowed - taken, kWindow);
  }
}

TEST(StdinBroadcast, RefusesAHostThatTookMoreThanItWasSent) {
  StdinBroadcast input({0, 1});
  input.NoteSent(10);
  EXPECT_EQ(*input.NoteRead(0, 10), 0U);
  EXPECT_EQ(input.NoteRead(0, 1).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(input.NoteRead(1, UINT64_MAX).status().code(), Code::kInvalidArgument);
}

TEST(StdinBroadcast, IgnoresAHostWithoutReaders) {
  StdinBroadcast input({0});
  EXPECT_EQ(*input.NoteRead(7, 1000), 0U);
}

}  // namespace
}  // namespace hvd
