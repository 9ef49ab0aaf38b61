#include "launcher/wire/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace hvd {
namespace {

using ::testing::HasSubstr;

// "a: 0.0/3 ..." : per rank host, local rank / local size, cross rank / cross size.
std::string Text(const Plan& plan) {
  std::ostringstream text;
  for (const Placement& p : plan.ranks) {
    if (p.rank > 0) text << ' ';
    text << plan.hosts[p.host] << '[' << p.local_rank << '/' << p.local_size << ' ' << p.cross_rank
         << '/' << p.cross_size << ']';
  }
  return text.str();
}

TEST(Plan, Table) {
  struct Row {
    std::vector<HostSlots> hosts;
    uint32_t num_proc;
    const char* ranks;
    bool homogeneous;
  };
  const std::vector<Row> rows = {
      {{{"a", 2}}, 2, "a[0/2 0/1] a[1/2 0/1]", true},
      {{{"a", 4}}, 2, "a[0/2 0/1] a[1/2 0/1]", true},
      {{{"a", 1}, {"b", 3}, {"c", 2}},
       6,
       "a[0/1 0/3] b[0/3 1/3] b[1/3 0/2] b[2/3 0/1] c[0/2 2/3] c[1/2 1/2]",
       false},
      {{{"a", 2}, {"b", 2}}, 4, "a[0/2 0/2] a[1/2 0/2] b[0/2 1/2] b[1/2 1/2]", true},
      {{{"a", 2}, {"b", 2}}, 3, "a[0/2 0/2] a[1/2 0/1] b[0/1 1/2]", false},
      {{{"a", 2}, {"b", 2}}, 2, "a[0/2 0/1] a[1/2 0/1]", true},
      {{{"a", 0}, {"b", 1}}, 1, "b[0/1 0/1]", true},
      {{{"a", 1}, {"b", 1}, {"a", 1}}, 3, "a[0/2 0/2] a[1/2 0/1] b[0/1 1/2]", false},
  };
  for (const Row& row : rows) {
    Result<Plan> plan = MakePlan(row.hosts, row.num_proc);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(Text(*plan), row.ranks);
    EXPECT_EQ(plan->homogeneous, row.homogeneous) << row.ranks;
  }
}

TEST(Plan, RanksThatSomebodyElseHasPlaced) {
  const Plan plan = PlanOfPlaces({"a", "b", "c"}, {1, 0, 1, 0, 1});
  EXPECT_EQ(Text(plan), "b[0/3 1/2] a[0/2 0/2] b[1/3 1/2] a[1/2 0/2] b[2/3 0/1]");
  EXPECT_FALSE(plan.homogeneous);
  EXPECT_EQ(plan.UsedHosts(), (std::vector<uint32_t>{1, 0})) << "c has no rank";
  const Result<std::vector<RankPlace>> places = PlacesOf(plan.Layout(), plan.size());
  ASSERT_TRUE(places.ok());
  EXPECT_EQ(*places, (std::vector<RankPlace>{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {0, 2}}));
}

TEST(Plan, TooFewSlotsAreNamed) {
  Result<Plan> plan = MakePlan({{"a", 2}, {"b", 1}}, 4);
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.status().message(), HasSubstr("4 processes"));
  EXPECT_THAT(plan.status().message(), HasSubstr("-np 3"));
}

TEST(Plan, PartOfOneHost) {
  Result<Plan> plan = MakePlan({{"a", 1}, {"b", 2}}, 3);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->OnHost(1).size(), 2u);
  EXPECT_EQ(plan->OnHost(1)[0].rank, 1u);
}

}  // namespace
}  // namespace hvd
