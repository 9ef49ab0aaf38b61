#include "launcher/doctor/probed_hosts.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

// Hosts 2, 4 and 6, with the numbers 0, 1 and 2.
ProbedHosts ThreeHosts() {
  ProbedHosts probed;
  for (uint32_t host : {2u, 4u, 6u}) probed.Add(host);
  return probed;
}

TEST(ProbedHosts, AreNumberedInTheirOrder) {
  const ProbedHosts probed = ThreeHosts();
  EXPECT_EQ(probed.size(), 3u);
  EXPECT_EQ(probed.NumberOf(6), 2u);
  EXPECT_EQ(probed.PartnersOf(4), (std::vector<uint32_t>{0, 2}));
}

TEST(ProbedHosts, AnAddressMeansThatTheHostWasReached) {
  ProbedHosts probed = ThreeHosts();
  ConnectivityProbed answer;
  answer.addresses = {"10.0.0.1", ""};
  answer.reasons = {"", "timed out\x1b[31m"};
  probed.Note(4, answer);
  EXPECT_TRUE(probed.Reached(4, 2));
  EXPECT_FALSE(probed.Reached(2, 4));
  EXPECT_FALSE(probed.Reached(4, 6));
  EXPECT_EQ(probed.ReasonFor(4, 2), "");
  EXPECT_NE(probed.ReasonFor(4, 6).find("timed out"), std::string::npos);
  EXPECT_EQ(probed.ReasonFor(4, 6).find('\x1b'), std::string::npos) << "it is shown on a terminal";
}

TEST(ProbedHosts, AnAnswerThatIsTooShortOrTooLongIsHarmless) {
  ProbedHosts probed = ThreeHosts();
  ConnectivityProbed answer;
  probed.Note(2, answer);
  EXPECT_FALSE(probed.Reached(2, 4));
  answer.addresses = {"a", "b", "c", "d"};
  answer.reasons = {"", "", "", "", ""};
  probed.Note(2, answer);
  EXPECT_TRUE(probed.Reached(2, 4));
  EXPECT_TRUE(probed.Reached(2, 6));
}

TEST(ProbedHosts, AHostThatMissedLostOnesOnlyIsNotToBlame) {
  ProbedHosts probed = ThreeHosts();
  ConnectivityProbed answer;
  answer.addresses = {"10.0.0.1", ""};
  probed.Note(4, answer);  // it reached host 2, not host 6
  auto lost = [](uint32_t gone) { return [gone](uint32_t host) { return host == gone; }; };
  EXPECT_TRUE(probed.MissedLostOnly(4, lost(6)));
  EXPECT_FALSE(probed.MissedLostOnly(4, lost(2))) << "host 6 is there and was not reached";
  EXPECT_FALSE(probed.MissedLostOnly(4, lost(99))) << "none is lost";
}

}  // namespace
}  // namespace hvd
