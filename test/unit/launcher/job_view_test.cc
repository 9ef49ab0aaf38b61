// How a job fares: rates between two looks, the rank that is waited for, the table, JSON and the
// metrics.
#include "launcher/live/job_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "launcher/live/metrics_text.h"
#include "launcher/live/view_json.h"
#include "launcher/live/view_table.h"

namespace hvd {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kSecond = 1'000'000'000;

RankView Rank(uint32_t rank, double waiting, const std::string& state = "computing") {
  RankView view;
  view.worker = view.rank = rank;
  view.host = "node1";
  view.pid = 100;
  view.state = state;
  view.operations = 7;
  view.bytes = 1'234'567;
  view.rates = RankRates{100, 5e6, 2, waiting, 0.25};
  view.collective = "ALLREDUCE";
  view.last_submitted = "grad";
  return view;
}

JobView View(std::vector<RankView> ranks) {
  JobView view;
  view.job = "0123456789abcdef";
  view.generation = 2;
  view.size = static_cast<uint32_t>(ranks.size());
  view.straggler = FindStraggler(ranks);
  view.ranks = std::move(ranks);
  return view;
}

TEST(JobView, RatesAreOfTheTimeBetweenTwoLooks) {
  const WorkerCounts before{0, 0, RankActivity::kComputing, 10, 1000, 1, 0, 2, kSecond, 0, "a"};
  WorkerCounts now = before;
  now.operations = 30;
  now.bytes = 5000;
  now.steps = 2;
  now.last = 7;
  now.waited_ns = 2 * kSecond;
  const auto rates = RatesBetween(before, now, 2 * kSecond);
  ASSERT_TRUE(rates);
  EXPECT_DOUBLE_EQ(rates->operations, 10);
  EXPECT_DOUBLE_EQ(rates->bytes, 2000);
  EXPECT_DOUBLE_EQ(rates->steps, 0.5);
  EXPECT_DOUBLE_EQ(rates->waiting, 0.5);
  EXPECT_DOUBLE_EQ(rates->last, 0.25);
}

TEST(JobView, CountsThatGoBackwardsGiveNoRates) {
  const WorkerCounts before{0, 0, RankActivity::kComputing, 10, 1000, 1, 0, 2, kSecond, 0, "a"};
  WorkerCounts now = before;
  EXPECT_FALSE(RatesBetween(before, now, 0));
  now.operations = 9;
  EXPECT_FALSE(RatesBetween(before, now, kSecond));
}

TEST(JobView, SharesStayWithinOne) {
  const WorkerCounts before{};
  WorkerCounts now;
  now.waited_ns = 5 * kSecond;
  now.last = 3;
  now.operations = 1;
  const auto rates = RatesBetween(before, now, kSecond);
  ASSERT_TRUE(rates);
  EXPECT_DOUBLE_EQ(rates->waiting, 1);
  EXPECT_DOUBLE_EQ(rates->last, 1);
}

TEST(JobView, TheRankThatWaitsLeastIsWaitedFor) {
  const auto found = FindStraggler({Rank(0, 0.4), Rank(1, 0.5), Rank(2, 0.02), Rank(3, 0.6)});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 2U);
  EXPECT_DOUBLE_EQ(found->waits, 0.02);
  EXPECT_DOUBLE_EQ(found->others_wait, 0.5);
}

TEST(JobView, NobodyIsWaitedForWhereAllWaitAlike) {
  EXPECT_FALSE(FindStraggler({Rank(0, 0.40), Rank(1, 0.42), Rank(2, 0.38)}));
  EXPECT_FALSE(FindStraggler({Rank(0, 0.0)}));
  EXPECT_FALSE(FindStraggler({}));
  EXPECT_FALSE(FindStraggler({Rank(0, 0.9), Rank(1, 0.0, "left")}));
}

TEST(JobView, SurvivesJson) {
  JobView view = View({Rank(0, 0.5), Rank(1, 0.01)});
  view.time = 1234.5;
  view.ranks[0].rates.reset();
  view.ranks[0].last_submitted = "x\n\"\xff";  // shown with a replacement
  view.ranks[1].last_submitted.clear();
  view.ranks[1].collective.clear();
  const std::string line = ViewJson(view);
  EXPECT_THAT(line, Not(HasSubstr("\n")));
  const Result<JobView> back = ParseViewJson(line);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(ViewJson(*back), line);
  EXPECT_FALSE(back->ranks[0].rates);
  EXPECT_DOUBLE_EQ(back->ranks[1].rates->waiting, 0.01);
}

TEST(JobView, OtherJsonIsRefused) {
  for (const char* line : {"", "{}", "[]", "null", "{\"job\":1}", "{\"job\":\"a\"}", "\xff"})
    EXPECT_FALSE(ParseViewJson(line).ok()) << line;
  EXPECT_FALSE(ParseRingHead("{\"rank\":0}").ok());
  // Numbers that their fields do not hold.
  for (const char* generation : {"6e127", "-1", "0.5", "18446744073709551616", "true", "\"1\""}) {
    const std::string line = std::string("{\"rank\":0,\"host\":\"a\",\"generation\":") +
                             generation + ",\"offset_ns\":0,\"uncertainty_ns\":0,\"bytes\":0}";
    EXPECT_FALSE(ParseRingHead(line).ok()) << line;
  }
  EXPECT_FALSE(ParseRingHead("3").ok());
}

TEST(JobView, HeadsOfRingsSurviveJson) {
  const RingHead head{3, "node1", 2, -5, 6, 32, false, ""};
  const Result<RingHead> back = ParseRingHead(RingHeadJson(head));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(RingHeadJson(*back), RingHeadJson(head));
  const RingHead end{0, "", 0, 0, 0, 0, true, "one is missing"};
  EXPECT_TRUE(ParseRingHead(RingHeadJson(end))->end);
  EXPECT_EQ(ParseRingHead(RingHeadJson(end))->trouble, "one is missing");
}

TEST(JobView, TheTableHasALineForEachRank) {
  const JobView view = View({Rank(0, 0.5), Rank(1, 0.01)});
  const std::string table = ViewTable(view, {}, false);
  EXPECT_THAT(
      table,
      HasSubstr("the other ranks wait for rank 1: it waits 1 % of the time, the others 50 %"));
  EXPECT_THAT(table, HasSubstr("ALLREDUCE grad"));
  EXPECT_THAT(table, HasSubstr("5.00 MB"));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 6);
  EXPECT_THAT(table, Not(HasSubstr("\x1b")));
  EXPECT_THAT(ViewTable(view, {}, true), HasSubstr("\x1b[31m"));
}

TEST(JobView, ATableFitsItsTerminal) {
  std::vector<RankView> ranks;
  for (uint32_t rank = 0; rank < 50; ++rank) ranks.push_back(Rank(rank, 0.5));
  const std::string table = ViewTable(View(ranks), {40, 12}, false);
  EXPECT_LE(std::count(table.begin(), table.end(), '\n'), 12);
  EXPECT_THAT(table, HasSubstr("more; --json shows all"));
  size_t at = 0;
  while (at < table.size()) {
    const size_t end = table.find('\n', at);
    EXPECT_LE(end - at, 40U);
    at = end + 1;
  }
}

TEST(JobView, ForeignTextIsMadeSafe) {
  JobView view = View({Rank(0, 0.5)});
  view.ranks[0].last_submitted = "\x1b[2J";
  view.ranks[0].host = "a\nb";
  EXPECT_THAT(ViewTable(view, {}, false), Not(HasSubstr("\x1b")));
}

TEST(JobView, OneLineSaysHowItFares) {
  EXPECT_EQ(ViewSummary(View({Rank(0, 0.5), Rank(1, 0.01)})),
            "2 ranks, generation 2, 2.00 steps/s, 100 operations/s, 5.00 MB/s, waiting 50 %, "
            "the other ranks wait for rank 1: it waits 1 % of the time, the others 50 %");
  EXPECT_EQ(ViewSummary({}), "0 ranks");
}

TEST(JobView, NumbersHaveThreeDigits) {
  EXPECT_EQ(ScaledText(0), "0 ");
  EXPECT_EQ(ScaledText(1.234), "1.23 ");
  EXPECT_EQ(ScaledText(12.34), "12.3 ");
  EXPECT_EQ(ScaledText(999.4), "999 ");
  EXPECT_EQ(ScaledText(999.6), "1.00 k");
  EXPECT_EQ(ScaledText(1.5e9), "1.50 G");
}

TEST(JobView, MetricsEscapeLabels) {
  JobView view = View({Rank(0, 0.5)});
  view.ranks[0].host = "a\"b\\c\nd";
  const std::string text = MetricsText(view);
  EXPECT_THAT(text, HasSubstr("host=\"a\\\"b\\\\c\\nd\""));
  EXPECT_THAT(text, HasSubstr("# TYPE hvd_operations_total counter\n"));
  EXPECT_THAT(text, HasSubstr("hvd_ranks{job_id=\"0123456789abcdef\"} 1\n"));
  EXPECT_EQ(text.back(), '\n');
}

}  // namespace
}  // namespace hvd
