#include "timeline/read/json_walk.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "timeline/read/trace_event.h"

namespace hvd {
namespace {

Walked WalkOf(std::string_view text) { return JsonWalk(text).Value(); }

TEST(JsonWalkTest, TakesWholeValues) {
  for (const char* text : {"{}", "[]", "\"\"", R"({"a":[1,-0.5,1e9,{"b":null}],"c":"\u00e9\n\""})",
                           " [ ] ", "[true , false]", "0 ", "-12.50E-3 "}) {
    JsonWalk walk(text);
    EXPECT_EQ(walk.Space(), Walked::kWhole);
    EXPECT_EQ(walk.Value(), Walked::kWhole) << text;
  }
}

TEST(JsonWalkTest, TellsWhatIsCutFromWhatIsBad) {
  const std::string whole = R"({"a":[1,2.5e3,true,"x\u00e9"],"b":{"c":null}})";
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(WalkOf(whole.substr(0, size)), Walked::kCut) << size;
  for (const char* text :
       {"{a}", "{\"a\" 1}", "{\"a\":}", "[1,]", "{\"a\":1,}", "[01]", "[1.]", "[+1]", "[nul]",
        "[\"\x01\"]", "[\"\\x\"]", "[\"\\u12g4\"]", "[1}", "[NaN]", "]"})
    EXPECT_EQ(WalkOf(text), Walked::kBad) << text;
}

TEST(JsonWalkTest, RefusesWhatIsNestedTooDeeply) {
  EXPECT_EQ(WalkOf(std::string(60, '[') + std::string(60, ']')), Walked::kWhole);
  EXPECT_EQ(WalkOf(std::string(100000, '[')), Walked::kBad);
}

TEST(JsonWalkTest, GivesMembersAsTheyAreWritten) {
  std::vector<std::string> seen;
  ForEachMember(R"({"a": 1, "b" : "x\"y", "c":{"d":[2]}})",
                [&](std::string_view key, std::string_view value) {
                  seen.push_back(std::string(key) + "=" + std::string(value));
                });
  EXPECT_EQ(seen, (std::vector<std::string>{"a=1", "b=\"x\\\"y\"", "c={\"d\":[2]}"}));
}

TEST(JsonWalkTest, ResolvesEscapes) {
  EXPECT_EQ(Unescaped(R"(a\"b\\c\/\n\t\u0041\u00e9\u20ac\ud83d\ude00)"),
            "a\"b\\c/\n\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(Unescaped(R"(\ud83d!)"), "\xef\xbf\xbd!");
  EXPECT_EQ(StringOf("12"), "");
  EXPECT_EQ(StringOf("\"x\""), "x");
}

TEST(TraceEventTest, ReadsMicroseconds) {
  EXPECT_EQ(NanosecondsOf("12.345"), 12345);
  EXPECT_EQ(NanosecondsOf("-0.001"), -1);
  EXPECT_EQ(NanosecondsOf("7"), 7000);
  EXPECT_EQ(NanosecondsOf("1.5"), 1500);
  EXPECT_EQ(NanosecondsOf("1700000000123456.789"), 1700000000123456789);
  EXPECT_EQ(NanosecondsOf("1.25e3"), 1250000);
  EXPECT_EQ(NanosecondsOf("0.12345"), 123);
  EXPECT_FALSE(NanosecondsOf(""));
  EXPECT_FALSE(NanosecondsOf("x"));
  EXPECT_FALSE(NanosecondsOf("99999999999999999999"));
  for (int64_t ns : {int64_t{0}, int64_t{-1}, int64_t{999}, int64_t{1234567890123}}) {
    std::string text;
    AppendMicros(&text, ns);
    EXPECT_EQ(NanosecondsOf(text), ns);
  }
}

}  // namespace
}  // namespace hvd
