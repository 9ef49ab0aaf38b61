#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/channels/ssh/ssh_hub.h"

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr TimePoint kStart{};
constexpr double kMiddle = 0.5;

TEST(HandshakeGate, LetsSoManyInAndTheOthersInTheirOrder) {
  HandshakeGate gate(2);
  EXPECT_TRUE(gate.Enter("a", 1));
  EXPECT_TRUE(gate.Enter("a", 2));
  EXPECT_FALSE(gate.Enter("a", 3));
  EXPECT_FALSE(gate.Enter("a", 4));
  EXPECT_THAT(gate.Leave("a", 2), ElementsAre(3));
  EXPECT_THAT(gate.Leave("a", 1), ElementsAre(4));
  EXPECT_THAT(gate.Leave("a", 3), IsEmpty());
}

TEST(HandshakeGate, AddressesDoNotWaitForEachOther) {
  HandshakeGate gate(1);
  EXPECT_TRUE(gate.Enter("a", 1));
  EXPECT_TRUE(gate.Enter("b", 2));
}

TEST(HandshakeGate, WhoGivesUpInTheLineIsNotCalled) {
  HandshakeGate gate(1);
  gate.Enter("a", 1);
  gate.Enter("a", 2);
  gate.Enter("a", 3);
  EXPECT_THAT(gate.Leave("a", 2), IsEmpty());
  EXPECT_THAT(gate.Leave("a", 1), ElementsAre(3));
}

TEST(HandshakeGate, EightByDefault) {
  HandshakeGate gate;
  for (uint64_t ticket = 0; ticket < 8; ++ticket) EXPECT_TRUE(gate.Enter("a", ticket));
  EXPECT_FALSE(gate.Enter("a", 8));
}

TEST(HandshakeGate, ARefusalHalvesTheWidthDownToOne) {
  HandshakeGate gate(4);
  for (uint64_t ticket = 0; ticket < 6; ++ticket) gate.Enter("a", ticket);
  gate.NoteRefusal("a");
  EXPECT_THAT(gate.Leave("a", 0), IsEmpty());
  EXPECT_THAT(gate.Leave("a", 1), IsEmpty());
  EXPECT_THAT(gate.Leave("a", 2), ElementsAre(4));
  for (int i = 0; i < 5; ++i) gate.NoteRefusal("a");
  EXPECT_THAT(gate.Leave("a", 3), IsEmpty());
  EXPECT_THAT(gate.Leave("a", 4), ElementsAre(5));
}

TEST(RefusalPatience, ComesAgainLaterAndLaterUntilItHasBeenTooLong) {
  RefusalPatience patience(std::chrono::seconds(10));
  TimePoint now = kStart;
  Duration before{};
  int tries = 0;
  while (std::optional<Duration> delay = patience.OnRefusal(now, kMiddle)) {
    EXPECT_GE(*delay, before);
    EXPECT_LE(*delay, std::chrono::seconds(2));
    before = *delay;
    now += *delay;
    ++tries;
  }
  EXPECT_EQ(before, std::chrono::seconds(2));
  EXPECT_LE(now - kStart, std::chrono::seconds(10));
  EXPECT_GT(now - kStart, std::chrono::seconds(7));
  EXPECT_EQ(patience.refusals(), tries + 1);
}

TEST(RefusalPatience, SpreadsTheTries) {
  RefusalPatience one, other;
  EXPECT_EQ(one.OnRefusal(kStart, 0), std::chrono::milliseconds(50));
  EXPECT_EQ(other.OnRefusal(kStart, 1), std::chrono::milliseconds(150));
}

}  // namespace
}  // namespace hvd
