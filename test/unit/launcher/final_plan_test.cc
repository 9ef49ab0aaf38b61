#include "launcher/job/host_records/final_plan.h"

#include <gtest/gtest.h>

#include <sstream>

namespace hvd {
namespace {

HostSlots Known(const char* name, uint32_t slots, uint16_t port = 0) {
  return {.host = name, .slots = slots, .port = port, .remote = true};
}
HostSlots Unknown(const char* name) {
  return {.host = name, .slots = 1, .remote = true, .slots_known = false};
}
HostSlots Here(const char* name, uint32_t slots) { return {.host = name, .slots = slots}; }
AgentFacts Facts(const char* identity, uint32_t slots) { return {identity, slots, {}}; }

// "a:2 b:1": hosts with their ranks.
std::string Text(const Plan& plan) {
  std::ostringstream text;
  for (uint32_t host : plan.UsedHosts())
    text << (text.tellp() > 0 ? " " : "") << plan.hosts[host] << ":" << plan.OnHost(host).size();
  return text.str();
}

TEST(DraftPlan, OpensNoHostThatTheJobCannotNeed) {
  struct Row {
    std::vector<HostSlots> hosts;
    uint32_t num_proc;
    size_t opened;  // 0: an error
  };
  const std::vector<Row> rows = {
      {{Known("a", 2), Known("b", 2), Known("c", 2)}, 4, 2},
      {{Known("a", 2), Unknown("b")}, 2, 1},
      {{Unknown("a"), Unknown("b"), Unknown("c")}, 2, 2},
      {{Unknown("a"), Unknown("b")}, 7, 2},
      {{Unknown("a"), Known("b", 1)}, 7, 2},
      {{Known("a", 2), Known("b", 2)}, 5, 0},
      {{Unknown("a")}, 0, 0},
  };
  for (const Row& row : rows) {
    Result<PlanDraft> draft = DraftPlan(row.hosts, row.num_proc);
    EXPECT_EQ(draft.ok() ? draft->hosts.size() : 0, row.opened);
    if (!draft.ok()) continue;
    EXPECT_EQ(draft->plan.hosts.size(), row.opened);
    EXPECT_EQ(draft->plan.size(), row.num_proc);
  }
}

TEST(FinalPlan, MergesHostsByWhatTheyAreAndNotByName) {
  struct Row {
    std::vector<HostSlots> hosts;
    std::vector<AgentFacts> facts;
    uint32_t num_proc;
    const char* plan;
    std::vector<uint32_t> no_rank;
  };
  const std::vector<Row> rows = {
      // Two names of one host, and one that is another.
      {{Known("a", 1), Known("b", 1), Known("c", 1)},
       {Facts("x", 8), Facts("y", 8), Facts("x", 8)},
       3,
       "a:2 b:1",
       {2}},
      {{Known("a", 2), Known("b", 2)}, {Facts("x", 8), Facts("x", 8)}, 4, "a:4", {1}},
      // This machine, and a way to it over ssh.
      {{Here("localhost", 1), Known("b", 1)},
       {Facts("x", 2), Facts("x", 2)},
       2,
       "localhost:2",
       {1}},
      {{Known("b", 1), Here("localhost", 1)}, {Facts("x", 2), Facts("x", 2)}, 2, "b:2", {1}},
      // One name, two containers.
      {{Known("a", 1, 2222), Known("a", 1, 2223)},
       {Facts("x", 2), Facts("y", 2)},
       2,
       "[a]:2222:1 [a]:2223:1",
       {}},
      // Played hosts are hosts.
      {{Here("host-0", 1), Here("host-1", 1)},
       {Facts("x", 2), Facts("x", 2)},
       2,
       "host-0:1 host-1:1",
       {}},
      // Nothing is known, nothing is merged.
      {{Known("a", 1), Known("b", 1)}, {Facts("", 8), Facts("", 8)}, 2, "a:1 b:1", {}},
  };
  for (const Row& row : rows) {
    Result<FinalPlan> final = MakeFinalPlan(row.hosts, row.facts, row.num_proc);
    ASSERT_TRUE(final.ok()) << row.plan;
    EXPECT_EQ(Text(final->plan), row.plan);
    EXPECT_EQ(final->no_rank, row.no_rank) << row.plan;
    EXPECT_EQ(final->notes.size(), row.no_rank.empty() ? 0U : 1U);
  }
}

TEST(FinalPlan, AHostWithoutANumberHasWhatItsAgentSays) {
  struct Row {
    std::vector<HostSlots> hosts;
    std::vector<AgentFacts> facts;
    uint32_t num_proc;
    const char* plan;  // empty: an error
  };
  const std::vector<Row> rows = {
      {{Unknown("a"), Unknown("b")}, {Facts("x", 2), Facts("y", 4)}, 6, "a:2 b:4"},
      {{Unknown("a"), Unknown("b")}, {Facts("x", 2), Facts("y", 4)}, 2, "a:2"},
      {{Unknown("a"), Unknown("b")}, {Facts("x", 2), Facts("y", 4)}, 7, ""},
      {{Known("a", 1), Unknown("b")}, {Facts("x", 9), Facts("y", 4)}, 5, "a:1 b:4"},
      {{Unknown("a")}, {Facts("x", 0)}, 1, "a:1"},
      // It has its cores once, however often it was named.
      {{Unknown("a"), Unknown("b")}, {Facts("x", 2), Facts("x", 2)}, 3, ""},
  };
  for (const Row& row : rows) {
    Result<FinalPlan> final = MakeFinalPlan(row.hosts, row.facts, row.num_proc);
    ASSERT_EQ(final.ok(), *row.plan != '\0') << row.num_proc;
    if (final.ok()) {
      EXPECT_EQ(Text(final->plan), row.plan);
    }
  }
}

TEST(FinalPlan, NumbersHostsWithoutAGapInWhatRanksHear) {
  auto final = MakeFinalPlan({Known("a", 1), Known("b", 1), Known("c", 1)},
                             {Facts("x", 1), Facts("x", 1), Facts("y", 1)}, 3);
  ASSERT_TRUE(final.ok());
  EXPECT_EQ(final->plan.UsedHosts(), (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(final->plan.Layout(), (std::vector<RankRun>{{0, 0, 2}, {1, 0, 1}}));
  EXPECT_FALSE(final->plan.homogeneous);
  EXPECT_EQ(final->plan.ranks[2].cross_rank, 1U);
  EXPECT_EQ(final->plan.ranks[2].cross_size, 2U);
}

TEST(FinalPlan, SaysWhoIsWhomAndWhoIsNotNeeded) {
  auto final = MakeFinalPlan({Unknown("a"), Unknown("b"), Unknown("c")},
                             {Facts("x", 2), Facts("x", 2), Facts("y", 2)}, 2);
  ASSERT_TRUE(final.ok());
  EXPECT_EQ(final->notes,
            (std::vector<std::string>{
                "b is the host a under another name: one host with 2 slots",
                "c gets no rank: the hosts named before have slots for all 2; --slots-per-host 1 "
                "gives each host one"}));
}

}  // namespace
}  // namespace hvd
