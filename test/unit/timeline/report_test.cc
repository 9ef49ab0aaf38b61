#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "timeline/read/trace_source.h"
#include "timeline/report/analysis.h"
#include "timeline/report/facts_collector.h"
#include "timeline/report/quantities.h"
#include "timeline/report/report_output.h"
#include "timeline/report/report_parts.h"

namespace hvd {
namespace {

using testing::HasSubstr;
using testing::Not;

// Writes a timeline by hand, in milliseconds.
class Trace {
 public:
  explicit Trace(int ranks, std::vector<std::string> hosts = {"a"}) {
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string host = hosts[static_cast<size_t>(rank) % hosts.size()];
      Event(R"("ph":"M","name":"process_name")", rank, 0,
            R"("args":{"name":"rank )" + std::to_string(rank) + " on " + host + "\"}");
      Event(R"("ph":"i","name":"GENERATION","ts":0)", rank, 0,
            R"("args":{"host":")" + host + "\"}");
    }
  }
  void Name(int rank, int row, const std::string& name) {
    Event(R"("ph":"M","name":"thread_name")", rank, row, R"("args":{"name":")" + name + "\"}");
  }
  void Operation(int rank, int row, double submit, double start, double end, int bytes) {
    At(R"("ph":"B","name":"NEGOTIATE_ALLREDUCE")", rank, row, submit);
    At(R"("ph":"X","name":")" + std::to_string(rank) + "\"", rank, row, submit);
    At(R"("ph":"E")", rank, row, start);
    At(R"("ph":"B","name":"ALLREDUCE")", rank, row, start);
    At(R"("ph":"E","args":{"bytes":)" + std::to_string(bytes) + "}", rank, row, end);
  }
  void Wait(int rank, double begin, double end) {
    At(R"("ph":"B","name":"WAIT")", rank, 0, begin);
    At(R"("ph":"E")", rank, 0, end);
  }
  void Activity(int rank, int row, const std::string& name, double begin, double end, int bytes) {
    At(R"("ph":"B","args":{"bytes":)" + std::to_string(bytes) + R"(},"name":")" + name + "\"", rank,
       row, begin);
    At(R"("ph":"E")", rank, row, end);
  }
  void Late(int rank, int row, double ms, double late) {
    At(R"("ph":"i","name":"LAST_TO_ARRIVE","args":{"late_ns":)" +
           std::to_string(static_cast<int64_t>(late * 1e6)) + "}",
       rank, row, ms);
  }
  void Link(int rank, double ms, int to, int bytes, int us) {
    At(R"("ph":"i","name":"LINK","args":{"to":)" + std::to_string(to) + R"(,"sent":)" +
           std::to_string(bytes) + R"(,"busy_us":)" + std::to_string(us) + "}",
       rank, 0, ms);
  }
  TraceFacts Facts() const {
    auto events = events_;
    std::stable_sort(events.begin(), events.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::string text;
    for (const auto& [ms, event] : events) text += (text.empty() ? "[" : ",\n") + event;
    auto source = TraceSource::OfText("a.json", text + "]");
    EXPECT_TRUE(source.ok()) << source.status().message();
    FactsCollector collector;
    while (const TraceEvent* event = (*source)->Next()) collector.Add(*event);
    EXPECT_TRUE((*source)->status().ok()) << (*source)->status().message();
    return collector.Finish();
  }
  Report Made() const { return MakeReport(Facts(), "a.json"); }

 private:
  void Event(const std::string& what, int rank, int row, const std::string& more, double ms = -1) {
    events_.emplace_back(ms, "{" + what + ",\"pid\":" + std::to_string(rank) + ",\"tid\":" +
                                 std::to_string(row) + (more.empty() ? "" : "," + more) + "}");
  }
  void At(const std::string& what, int rank, int row, double ms) {
    Event(what + ",\"ts\":" + std::to_string(ms * 1e3), rank, row, "", ms);
  }
  std::vector<std::pair<double, std::string>> events_;
};

// Ten steps of 40 ms with three tensors. Rank 1 loses 20 ms before the second one, and the others
// wait for its last one at the end of each step.
Trace WithStraggler() {
  Trace trace(3);
  for (int rank = 0; rank < 3; ++rank) {
    for (int row = 1; row <= 3; ++row) trace.Name(rank, row, "layer" + std::to_string(row));
    for (int step = 0; step < 10; ++step) {
      const double begin = 40 * step;
      trace.Operation(rank, 1, begin + 5, begin + 5.2, begin + 6, 1'000'000);
      const double late = rank == 1 ? 20 : 0;
      trace.Operation(rank, 2, begin + 10 + late, begin + 30, begin + 31, 1'000'000);
      trace.Operation(rank, 3, begin + 12 + late, begin + 32, begin + 33, 2000);
      trace.Wait(rank, begin + 12 + late, begin + 33);
    }
  }
  for (int step = 0; step < 10; ++step) {
    trace.Late(2, 1, 40 * step + 5.2, 0.1);
    trace.Late(1, 2, 40 * step + 30, 20);
    trace.Late(1, 3, 40 * step + 32, 20);
  }
  return trace;
}

TEST(ReportTest, NamesTheStragglerItsTensorAndTheShareOfTime) {
  const Report report = WithStraggler().Made();
  EXPECT_EQ(report.steps, 9U);
  EXPECT_EQ(report.tensors_per_step, 3U);
  EXPECT_EQ(report.median_step_ns, 40'000'000);
  EXPECT_EQ(report.bytes_per_step, 2'002'000U);
  ASSERT_TRUE(report.straggler);
  EXPECT_EQ(report.straggler->rank, 1U);
  EXPECT_EQ(report.straggler->tensor, "layer2");
  EXPECT_NEAR(report.straggler->tensor_share, 1, 0.05);
  EXPECT_NEAR(report.straggler->time_share, 0.5, 0.02);
  EXPECT_NEAR(report.straggler->last_share, 0.667, 0.02);
  const std::string text = ReportText(report);
  EXPECT_THAT(text, HasSubstr("1. rank 1 on a is last for 67 % of the tensors; the others wait"));
  EXPECT_THAT(text, HasSubstr("It falls behind at layer2"));
  EXPECT_EQ(text.find("little by little"), std::string::npos);
}

TEST(ReportTest, TellsWaitsFromHiddenCommunication) {
  const Report report = WithStraggler().Made();
  const RankReport& rank = report.ranks[0];
  EXPECT_NEAR(rank.wait_share, 21.0 / 40, 0.02);
  EXPECT_NEAR(rank.communication_share, 24.0 / 40, 0.02);
  EXPECT_NEAR(rank.hidden_share, 3.0 / 24, 0.02);
  EXPECT_NEAR(report.ranks[1].wait_share, 1.0 / 40, 0.02);
}

TEST(ReportTest, ARankThatFallsBehindEverywhereIsOnASlowCore) {
  Trace trace(2);
  for (int rank = 0; rank < 2; ++rank) {
    for (int row = 1; row <= 8; ++row) trace.Name(rank, row, "layer" + std::to_string(row));
    for (int step = 0; step < 10; ++step) {
      const double speed = rank == 1 ? 2 : 1;
      for (int row = 1; row <= 8; ++row) {
        const double submit = 40 * step + 2 * row * speed;
        trace.Operation(rank, row, submit, 40 * step + 4 * row, 40 * step + 4 * row + 0.1, 4000);
      }
      trace.Wait(rank, 40 * step + 16 * speed, 40 * step + 32.1);
    }
  }
  for (int step = 0; step < 10; ++step) {
    for (int row = 1; row <= 8; ++row) trace.Late(1, row, 40 * step + 4 * row, 2 * row);
  }
  const Report report = trace.Made();
  ASSERT_TRUE(report.straggler);
  EXPECT_EQ(report.straggler->rank, 1U);
  EXPECT_LT(report.straggler->tensor_share, 0.5);
  EXPECT_THAT(report.findings[0].sentence, HasSubstr("a slow or shared core"));
}

TEST(ReportTest, RanksThatAreLateInTurnAreNotBlamed) {
  Trace trace(2);
  for (int rank = 0; rank < 2; ++rank) {
    trace.Name(rank, 1, "a");
    for (int step = 0; step < 20; ++step) {
      const double late = step % 2 == rank ? 10 : 0;
      trace.Operation(rank, 1, 40 * step + late, 40 * step + 10, 40 * step + 11, 4000);
      trace.Wait(rank, 40 * step + late, 40 * step + 11);
      if (late > 0) trace.Late(rank, 1, 40 * step + 10, 10);
    }
  }
  const Report report = trace.Made();
  ASSERT_FALSE(report.findings.empty());
  EXPECT_THAT(report.findings[0].sentence, HasSubstr("Ranks are late in turn"));
  EXPECT_NEAR(report.findings[0].share, 0.125, 0.01);
}

TEST(ReportTest, AJobWithoutWaitsIsLimitedByComputing) {
  Trace trace(1);
  trace.Name(0, 1, "a");
  for (int step = 0; step < 10; ++step)
    trace.Operation(0, 1, 10 * step, 10 * step + 0.1, 10 * step + 1, 100);
  const Report report = trace.Made();
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_THAT(report.findings[0].sentence, HasSubstr("Computing limits the job"));
  EXPECT_EQ(report.ranks[0].hidden_share, 1);
}

TEST(ReportTest, ActivitiesInsideOfOperationsAreAddedUpAndEndNoOperation) {
  Trace trace(2);
  for (int rank = 0; rank < 2; ++rank) {
    trace.Name(rank, 1, "a");
    for (int step = 0; step < 10; ++step) {
      trace.Operation(rank, 1, 10 * step, 10 * step + 1, 10 * step + 9, 100);
      trace.Activity(rank, 1, "GLOO_ALLREDUCE", 10 * step + 2, 10 * step + 8, 400);
      trace.Activity(rank, 1, "HAND_OUT", 10 * step + 8, 10 * step + 8.5, 100);
    }
  }
  const Report report = trace.Made();
  ASSERT_EQ(report.activities.size(), 2U);
  EXPECT_EQ(report.activities[0].name, "GLOO_ALLREDUCE");
  EXPECT_EQ(report.activities[0].times, 20U);
  EXPECT_EQ(report.activities[0].bytes, 8000U);
  EXPECT_EQ(report.activities[0].mean_ns, 6'000'000);
  EXPECT_EQ(report.activities[1].total_ns, 10'000'000);
  EXPECT_NEAR(report.ranks[0].communication_share, 0.9, 0.02);
  EXPECT_THAT(ReportText(report), HasSubstr("Inside of operations, over all ranks"));
  EXPECT_THAT(ReportText(report), HasSubstr("GLOO_ALLREDUCE     20"));
}

TEST(ReportTest, StepsNeedNamesThatComeBack) {
  Trace trace(1);
  for (int i = 1; i < 10; ++i) {
    trace.Name(0, i, "noname." + std::to_string(i));
    trace.Operation(0, i, i, i + 0.1, i + 0.2, 100);
  }
  const Report report = trace.Made();
  EXPECT_EQ(report.steps, 0U);
  EXPECT_THAT(ReportText(report), HasSubstr("no steps"));
}

TEST(ReportTest, WhatComesBackMoreOftenIsNoStep) {
  RankHistory rank;
  // Broadcasts at the start, then steps of four gradients, each with two metrics.
  for (uint32_t i = 0; i < 4; ++i) rank.operations.push_back({.tensor = 100 + i});
  for (int step = 0; step < 6; ++step) {
    for (uint32_t tensor : {1U, 50U, 2U, 3U, 50U, 4U})
      rank.operations.push_back({.tensor = tensor});
  }
  rank.operations.push_back({.tensor = 1});  // and it was killed
  const Steps steps = FindSteps(rank);
  EXPECT_EQ(steps.tensors, 4U);
  ASSERT_EQ(steps.begins.size(), 7U);
  EXPECT_EQ(steps.begins[0], 4U);
  EXPECT_EQ(steps.begins[1], 10U);
}

TEST(ReportTest, HostsAreCompared) {
  Trace trace(3, {"a", "b", "c"});
  for (int rank = 0; rank < 3; ++rank) {
    trace.Name(rank, 1, "big");
    for (int step = 0; step < 10; ++step) {
      const double end = 40 * step + (rank == 2 ? 32 : 12);
      trace.Operation(rank, 1, 40 * step + 1, 40 * step + 2, end, 10'000'000);
      trace.Wait(rank, 40 * step + 1, end);
    }
  }
  const Report report = trace.Made();
  ASSERT_EQ(report.hosts.size(), 3U);
  EXPECT_NEAR(static_cast<double>(report.hosts[2].behind_ns), 20e6, 1e3);
  EXPECT_NEAR(report.hosts[0].bytes_per_second, 1e9, 1e6);
  EXPECT_THAT(report.findings[0].sentence,
              HasSubstr("Between hosts, large tensors move at 333 MB/s."));
  EXPECT_TRUE(report.links.empty());
}

// Three hosts of two ranks each; leaders 0, 1 and 2 send to each other.
Trace WithLinks(const std::vector<std::vector<int>>& mega_per_second) {
  Trace trace(6, {"a", "b", "c"});
  for (int rank = 0; rank < 3; ++rank) {
    trace.Name(rank, 1, "big");
    for (int step = 0; step < 10; ++step) {
      trace.Operation(rank, 1, 40 * step + 1, 40 * step + 2, 40 * step + 30, 10'000'000);
      trace.Wait(rank, 40 * step + 1, 40 * step + 30);
    }
    for (int to = 0; to < 3; ++to) {
      const int speed = mega_per_second[static_cast<size_t>(rank)][static_cast<size_t>(to)];
      for (double ms : {100.0, 300.0})
        if (to != rank) trace.Link(rank, ms, to, 1'000'000, 1'000'000 / speed);
    }
  }
  return trace;
}

TEST(ReportTest, AHostWithSlowLinksIsNamed) {
  const Report report = WithLinks({{0, 5, 200}, {5, 0, 6}, {180, 5, 0}}).Made();
  ASSERT_EQ(report.links.size(), 6U);
  EXPECT_EQ(report.links[0].bytes, 2'000'000U);
  EXPECT_NEAR(report.links[0].bytes_per_second, 5e6, 1e3);
  EXPECT_THAT(report.findings[0].sentence,
              HasSubstr("All links of host b are slow: 5.00 MB/s, the others 200 MB/s."));
  EXPECT_THAT(ReportText(report), HasSubstr("Links between hosts"));
  EXPECT_EQ(nlohmann::json::parse(ReportJson(report, 0, 10))["links"][0]["to"], "b");
}

TEST(ReportTest, OneSlowLinkIsNamed) {
  const Report report = WithLinks({{0, 200, 10}, {200, 0, 210}, {220, 200, 0}}).Made();
  EXPECT_THAT(report.findings[0].sentence,
              HasSubstr("The link from host a to host c is slow: 10.0 MB/s, the others 200 MB/s."));
}

TEST(ReportTest, LinksThatAreAlikeAreNotWorthASentence) {
  const Report report = WithLinks({{0, 200, 150}, {200, 0, 210}, {220, 160, 0}}).Made();
  EXPECT_THAT(report.findings[0].sentence, Not(HasSubstr("slow")));
}

TEST(ReportTest, SizesHaveTheirSpeed) {
  const Report report = WithStraggler().Made();
  ASSERT_EQ(report.sizes.size(), 2U);
  EXPECT_EQ(report.sizes[0].least_bytes, 1000U);
  EXPECT_EQ(report.sizes[0].operations, 30U);
  EXPECT_NEAR(report.sizes[1].bytes_per_second, 1e9 / 0.9, 2e6);
}

TEST(ReportTest, JsonHasUnitsInItsNamesAndThePageKeepsNamesAsTexts) {
  Report report = WithStraggler().Made();
  report.tensors[0].name = "</script><b>&\xff\"";
  const auto json = nlohmann::json::parse(ReportJson(report, 2, 100));
  EXPECT_EQ(json["step_median_ms"], 40);
  EXPECT_EQ(json["straggler"]["tensor"], "layer2");
  EXPECT_EQ(json["ranks"][0]["slowest_steps"].size(), 9U);
  EXPECT_EQ(nlohmann::json::parse(ReportJson(report, -1, 4))["ranks"][0]["slowest_steps"].size(),
            3U);
  const std::string page = ReportPage(report);
  EXPECT_EQ(page.find("</script><b>"), std::string::npos);
  EXPECT_THAT(page, HasSubstr("\\u003c/script\\u003e\\u003cb\\u003e\\u0026"));
  EXPECT_EQ(page.find("@REPORT@"), std::string::npos);
}

TEST(ReportTest, EventsOfAnyKindAreTaken) {
  Trace trace(2);
  trace.Wait(0, 5, 1);
  trace.Late(0, 77, 3, 1);
  trace.Operation(1, 9, 3, 2, 1, -5);
  EXPECT_EQ(trace.Made().ranks.size(), 2U);
}

TEST(QuantitiesTest, HaveThreeDigits) {
  EXPECT_EQ(TimeText(950), "950 ns");
  EXPECT_EQ(TimeText(18'240'000), "18.2 ms");
  EXPECT_EQ(TimeText(999'600), "1.00 ms");
  EXPECT_EQ(BytesText(25'600'000), "25.6 MB");
  EXPECT_EQ(ShareText(0.4321), "43 %");
  EXPECT_EQ(ShareText(0.004), "0.4 %");
  EXPECT_EQ(ShareText(0), "0 %");
}

}  // namespace
}  // namespace hvd
