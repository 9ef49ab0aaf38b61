#include "timeline/convert/trace_merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "timeline/convert/pid_table.h"

namespace hvd {
namespace {

using Json = nlohmann::json;
using Texts = std::vector<std::pair<std::string, std::string>>;

std::string Timeline(int64_t start_us, const std::string& events) {
  return R"([{"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"rank 0",)"
         R"("start_time_since_epoch_in_micros":)" +
         std::to_string(start_us) +
         R"(}},{"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"rank 0 on a"}})" +
         events + "]";
}

Result<std::string> Merged(const Texts& texts) {
  std::vector<std::unique_ptr<TraceSource>> sources;
  for (const auto& [name, text] : texts) {
    auto source = TraceSource::OfText(name, text);
    if (!source.ok()) return source.status();
    sources.push_back(std::move(*source));
  }
  std::string out;
  auto counts = MergeTraces(sources, &out, [] { return true; });
  if (!counts.ok()) return counts.status();
  return out;
}

Json Parsed(const Texts& texts) {
  auto text = Merged(texts);
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.ok() ? Json::parse(*text) : Json();
}

const Json& Named(const Json& events, const std::string& name) {
  static const Json none;
  for (const Json& event : events) {
    if (event.value("name", "") == name) return event;
  }
  return none;
}

TEST(TraceMergeTest, PutsTwoTimelinesOntoOneClock) {
  const Json events =
      Parsed({{"a.json", Timeline(5000, R"(,{"ph":"i","name":"a","ts":1.5,"pid":0,"tid":1})"
                                        R"(,{"ph":"i","name":"c","ts":900,"pid":0,"tid":1})")},
              {"b.json", Timeline(5100, R"(,{"ph":"i","name":"b","ts":2.25,"pid":0,"tid":1})")}});
  EXPECT_EQ(events[0]["args"]["start_time_since_epoch_in_micros"], 5000);
  EXPECT_EQ(Named(events, "a")["ts"], 1.5);
  EXPECT_EQ(Named(events, "b")["ts"], 102.25);
  std::vector<std::string> order;
  for (const Json& event : events) {
    if (event["ph"] == "i") order.push_back(event["name"]);
  }
  EXPECT_THAT(order, testing::ElementsAre("a", "b", "c"));
  EXPECT_EQ(Named(events, "a")["pid"], 0);
  EXPECT_EQ(Named(events, "b")["pid"], 20'000'000);
  std::vector<std::string> names;
  for (const Json& event : events) {
    if (event["name"] == "process_name") names.push_back(event["args"]["name"]);
  }
  EXPECT_THAT(names, testing::ElementsAre("rank 0", "rank 0 on a", "rank 0 on a (b.json)"));
}

TEST(TraceMergeTest, AProfilersTraceStandsBesideItsRank) {
  const std::string kineto = R"({"distributedInfo": {"rank": 2}, "traceEvents": [
    {"ph": "M", "name": "process_name", "pid": 77, "tid": 0, "ts": 3, "args": {"name": "python"}},
    {"ph": "M", "name": "process_sort_index", "pid": 77, "tid": 0, "args": {"sort_index": 9}},
    {"ph": "X", "name": "op",
     "ts": 10.125, "dur": 2, "pid": 77, "tid": 5, "id": 4},
    {"ph": "X", "name": "span", "ts": 11, "dur": 2, "pid": "Spans", "tid": 5}
    ], "baseTimeNanoseconds": 5000000})";
  const auto text = Merged({{"a.json", Timeline(5000, "")}, {"k.json", kineto}});
  ASSERT_TRUE(text.ok()) << text.status().message();
  const Json events = Json::parse(*text);
  EXPECT_EQ(Named(events, "op")["ts"], 10.125);
  EXPECT_EQ(Named(events, "op")["pid"], 20'000'077);
  EXPECT_EQ(Named(events, "op")["id"], (int64_t{1} << 40) + 4);
  EXPECT_EQ(Named(events, "process_sort_index")["args"]["sort_index"], 2);
  EXPECT_NE(text->find("python (rank 2, profiler)"), std::string::npos);
  EXPECT_NE(text->find("Spans (rank 2, profiler)"), std::string::npos);
  // Each event in a line of its own.
  EXPECT_EQ(static_cast<size_t>(std::count(text->begin(), text->end(), '\n')), events.size() + 2);
}

TEST(TraceMergeTest, RefusesATraceWithoutAClock) {
  const auto text =
      Merged({{"a.json", Timeline(5000, "")}, {"b.json", R"([{"ph":"i","name":"x","ts":1}])"}});
  ASSERT_FALSE(text.ok());
  EXPECT_THAT(text.status().message(), testing::HasSubstr("b.json does not say when it began"));
  EXPECT_TRUE(Merged({{"b.json", R"([{"ph":"i","name":"x","ts":1}])"}}).ok());
}

TEST(TraceMergeTest, SaysWhichFileIsHalf) {
  std::string half = Timeline(5000, R"(,{"ph":"i","name":"a","ts":1,"pid":0})");
  half.pop_back();
  const auto text = Merged({{"a.json", Timeline(5000, "")}, {"half.json", half}});
  ASSERT_FALSE(text.ok());
  EXPECT_THAT(text.status().message(), testing::HasSubstr("half.json ends in the middle"));
}

TEST(PidTableTest, KeepsWhatNobodyHas) {
  PidTable pids({true, true, false});
  EXPECT_EQ(pids.Find(0, "0").text, "0");
  EXPECT_EQ(pids.Find(1, "4").text, "4");
  EXPECT_EQ(pids.Find(1, "0").text, "20000000");
  EXPECT_EQ(pids.Find(1, "5").text, "20000005");  // and those that follow go with it
  EXPECT_EQ(pids.Find(1, "4").text, "4");
  EXPECT_EQ(pids.Find(2, "7").text, "30000007");
  EXPECT_EQ(pids.Find(2, "\"Spans\"").text, "35000000");
  EXPECT_EQ(pids.Find(2, "99999999999").text, "35000001");
  EXPECT_TRUE(pids.Find(2, "8").is_new);
  EXPECT_FALSE(pids.Find(2, "8").is_new);
}

}  // namespace
}  // namespace hvd
