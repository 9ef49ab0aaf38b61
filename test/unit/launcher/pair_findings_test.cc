#include "launcher/doctor/findings/pair_findings.h"

#include <gtest/gtest.h>

#include "launcher/doctor/pair_measurements.h"

namespace hvd {
namespace {

using HostSet = std::set<uint32_t>;

std::vector<PairReport> AllPairsOf(uint32_t hosts) {
  std::vector<PairReport> pairs;
  for (const HostPair& pair : PairsOf(hosts)) {
    PairReport& report = pairs.emplace_back();
    report.a = pair.first;
    report.b = pair.second;
  }
  return pairs;
}

HostSet InCommon(uint32_t hosts, const std::vector<HostPair>& bad) {
  const std::vector<PairReport> all = AllPairsOf(hosts);
  std::vector<const PairReport*> found;
  for (const PairReport& pair : all) {
    for (const HostPair& wanted : bad) {
      if (HostPair(pair.a, pair.b) == wanted || HostPair(pair.b, pair.a) == wanted) {
        found.push_back(&pair);
      }
    }
  }
  EXPECT_EQ(found.size(), bad.size());
  return HostsInCommon(all, found);
}

TEST(HostsInCommon, IsTheHostOfAllBadPairs) {
  EXPECT_EQ(InCommon(4, {{1, 0}, {1, 2}, {1, 3}}), HostSet{1});
}

TEST(HostsInCommon, IsTheHostOfMostOfItsPairs) {
  EXPECT_EQ(InCommon(5, {{2, 0}, {2, 1}, {2, 3}}), HostSet{2});
}

TEST(HostsInCommon, IsNoneForSinglePairs) {
  EXPECT_EQ(InCommon(4, {{0, 1}}), HostSet{});
  EXPECT_EQ(InCommon(4, {{0, 1}, {2, 3}}), HostSet{});
  EXPECT_EQ(InCommon(4, {}), HostSet{});
}

TEST(HostsInCommon, IsNoneWhereTwoHostsHaveOnePair) { EXPECT_EQ(InCommon(2, {{0, 1}}), HostSet{}); }

TEST(HostsInCommon, MayBeTwo) {
  EXPECT_EQ(InCommon(6, {{0, 2}, {0, 3}, {0, 4}, {0, 5}, {1, 2}, {1, 3}, {1, 4}, {1, 5}}),
            (HostSet{0, 1}));
}

TEST(PairFindings, APairWithAHostThatIsInTroubleItselfIsNoFinding) {
  DoctorReport report;
  report.hosts.resize(3);
  report.hosts[0].trouble = "no key";
  report.pairs = AllPairsOf(3);
  for (PairReport& pair : report.pairs) {
    if (pair.a == 0 || pair.b == 0) pair.trouble = "does not reach it";
  }
  EXPECT_TRUE(PairFindings(report, {}).empty());
}

}  // namespace
}  // namespace hvd
