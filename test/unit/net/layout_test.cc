#include "runtime/net/layout.h"

#include <gtest/gtest.h>

#include "runtime/net/kv_store.h"

namespace hvd {
namespace {

using Places = std::vector<RankPlace>;
using Runs = std::vector<RankRun>;

TEST(Layout, RanksHostByHostAreOneRunPerHost) {
  Places places = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}};
  EXPECT_EQ(RunsOf(places), (Runs{{0, 0, 3}, {1, 0, 2}}));
  EXPECT_EQ(PlacesOf(RunsOf(places), 5).value(), places);
}

TEST(Layout, RanksDealtOutInTurnSurvive) {
  Places places = {{0, 0}, {1, 0}, {0, 1}, {1, 1}, {0, 2}};
  EXPECT_EQ(RunsOf(places), (Runs{{0, 0, 1, 2}, {0, 1, 1, 2}, {0, 2, 1}}));
  EXPECT_EQ(PlacesOf(RunsOf(places), 5).value(), places);
}

TEST(Layout, EqualHostsAreOneRun) {
  Places places;
  for (uint32_t host = 0; host < 10'000; ++host) {
    for (uint32_t local_rank = 0; local_rank < 8; ++local_rank)
      places.push_back({host, local_rank});
  }
  EXPECT_EQ(RunsOf(places), (Runs{{0, 0, 8, 10'000}}));
  EXPECT_EQ(PlacesOf(RunsOf(places), 80'000).value(), places);
  places.pop_back();
  EXPECT_EQ(RunsOf(places), (Runs{{0, 0, 8, 9'999}, {9'999, 0, 7}}));
  EXPECT_EQ(PlacesOf(RunsOf(places), 79'999).value(), places);
}

TEST(Layout, LocalRanksNeedNotFollowTheWorldRanks) {
  Places places = {{0, 1}, {0, 0}, {1, 0}};
  EXPECT_EQ(PlacesOf(RunsOf(places), 3).value(), places);
}

TEST(Layout, WhatIsNoWorldIsRefused) {
  const uint32_t huge = 4'000'000'000;
  struct Case {
    const char* what;
    Runs runs;
    uint32_t size;
  };
  for (const Case& c :
       {Case{"nobody", {}, 0}, Case{"too few", {{0, 0, 2}}, 3}, Case{"too many", {{0, 0, 3}}, 2},
        Case{"huge", {{0, 0, huge}}, huge}, Case{"huge hosts", {{0, 0, huge, huge}}, 0},
        Case{"no hosts", {{0, 0, 1, 0}}, 1},
        Case{"an empty run of many hosts", {{0, 0, 1}, {1, 0, 0, huge}}, 1},
        Case{"wraps around", {{0, 0, huge}, {0, 0, huge}}, huge + huge},
        Case{"a sum of 64 bits wraps around",
             {{0, 0, 1U << 31, 1U << 31},
              {0, 0, 1U << 31, 1U << 31},
              {0, 0, 1U << 31, 1U << 31},
              {0, 0, 1U << 31, 1U << 31},
              {0, 0, 2}},
             2},
        Case{"a host left out", {{0, 0, 1}, {2, 0, 1}}, 2}, Case{"no host 0", {{1, 0, 2}}, 2},
        Case{"no local rank 0", {{0, 1, 2}}, 2},
        Case{"a local rank left out", {{0, 0, 1}, {0, 2, 1}}, 2},
        Case{"one place twice", {{0, 0, 2}, {0, 1, 1}}, 3},
        Case{"numbers wrap", {{0, 0, 1}, {0, ~0U, 2}}, 3}}) {
    EXPECT_FALSE(PlacesOf(c.runs, c.size).ok()) << c.what;
  }
}

TEST(KvStore, KeysArePrintableAndShort) {
  EXPECT_TRUE(CheckKvKey("leader/0.address").ok());
  for (const std::string& bad :
       {std::string(), std::string("a b"), std::string("a\n"), std::string("\xc3\xa4"),
        std::string("a\0b", 3), std::string(kMaxKvKey + 1, 'k')})
    EXPECT_FALSE(CheckKvKey(bad).ok());
}

}  // namespace
}  // namespace hvd
