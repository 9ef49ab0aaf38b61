#include "timeline/read/trace_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kStart =
    R"({"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"rank 0")"
    R"(,"start_time_since_epoch_in_micros":1700}})";

struct Seen {
  std::vector<std::string> names;
  std::string trouble;
  TraceOrigin origin;
};

Seen Read(const std::string& text) {
  Seen seen;
  auto source = TraceSource::OfText("a.json", text);
  if (!source.ok()) {
    seen.trouble = source.status().message();
    return seen;
  }
  while (const TraceEvent* event = (*source)->Next()) seen.names.push_back(StringOf(event->name));
  seen.trouble = (*source)->status().message();
  seen.origin = (*source)->origin();
  return seen;
}

TEST(TraceSourceTest, ReadsATimelineWithRoomAtItsEnd) {
  const Seen seen = Read(std::string("[\n") + kStart + ",\n" +
                         R"({"ph":"i","name":"a \"b\"","ts":1})" + std::string(5000, ' ') + "\n]");
  EXPECT_EQ(seen.trouble, "");
  EXPECT_THAT(seen.names, ElementsAre("process_name", "a \"b\""));
  EXPECT_TRUE(seen.origin.timeline);
  EXPECT_EQ(seen.origin.zero_ns, 1700000);
}

TEST(TraceSourceTest, ReadsAProfilersTrace) {
  const std::string head =
      R"({ "schemaVersion": 1, "distributedInfo": {"backend": "gloo", "rank": 3},
    "traceEvents": [ {"ph": "X", "name": "aten::add",
      "ts": 1.5, "args": {"a": "baseTimeNanoseconds\": 7"}} ])";
  const Seen seen =
      Read(head + R"(, "traceName": "x", "baseTimeNanoseconds": 1712000000000000000 })");
  EXPECT_EQ(seen.trouble, "");
  EXPECT_THAT(seen.names, ElementsAre("aten::add"));
  EXPECT_EQ(seen.origin.rank, 3);
  EXPECT_EQ(seen.origin.zero_ns, 1712000000000000000);
  EXPECT_FALSE(Read(head + "}").origin.zero_ns);
}

TEST(TraceSourceTest, StampsSince1970NeedNoBeginning) {
  EXPECT_EQ(Read(R"({"traceEvents":[{"ph":"X","name":"a","ts":1700000000123456}]})").origin.zero_ns,
            0);
}

TEST(TraceSourceTest, ReadsEventsAcrossBlocks) {
  std::string text = "[";
  size_t count = 0;
  for (; text.size() < 3 * TraceSource::kBlock; ++count)
    text += (count == 0 ? "" : ",\n") + std::string(R"({"ph":"i","name":"n","args":{"x":")") +
            std::string(count % 3000, 'x') + "\"}}";
  text +=
      ",\n"
      R"({"name":"long","args":{"x":")" +
      std::string(3 * TraceSource::kBlock, 'x') + "\"}}]";
  const Seen seen = Read(text);
  EXPECT_EQ(seen.trouble, "");
  EXPECT_EQ(seen.names.size(), count + 1);
}

TEST(TraceSourceTest, SaysWhatIsWrongInOneSentence) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "is empty"},
      {"   ", "is empty"},
      {"hello", "begins with neither"},
      {"\x1f\x8b", "gunzip"},
      {"{\"a\":1}", "without a list"},
      {"{\"a\":", "ends before its events"},
      {"[{\"ph\":\"i\"}", "ends in the middle"},
      {"[{\"ph\":\"i\"},", "ends in the middle"},
      {"[{\"ph\":\"i\"},{\"ph",
       "ends in the middle: its writer was killed or is still at work, after 1 event"},
      {"[{\"ph\":\"i\"} {\"ph\":\"i\"}]", "no comma"},
      {"[1]", "no event in JSON"},
      {"[{\"ph\":\"i\"}] x", "goes on behind its end"},
      {"{\"traceEvents\":[] \"a\":1}", "no JSON behind its events"},
      {"{\"traceEvents\":[]", "ends in the middle"},
  };
  for (const auto& [text, trouble] : cases) {
    const Seen seen = Read(text);
    EXPECT_THAT(seen.trouble, HasSubstr(trouble)) << text;
    EXPECT_THAT(seen.trouble, testing::StartsWith("a.json ")) << text;
  }
  EXPECT_EQ(Read("[]").trouble, "");
  EXPECT_EQ(Read("{\"traceEvents\":[], \"a\": [1, {}]}").trouble, "");
  EXPECT_THAT(TraceSource::Open("/").status().message(), HasSubstr("Is a directory"));
  EXPECT_THAT(TraceSource::Open("/dev/null").status().message(), HasSubstr("no regular file"));
  EXPECT_THAT(TraceSource::Open("/no/such").status().message(), HasSubstr("No such file"));
}

}  // namespace
}  // namespace hvd
