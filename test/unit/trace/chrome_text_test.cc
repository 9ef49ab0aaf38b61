#include "runtime/trace/chrome_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hvd {
namespace {

using Json = nlohmann::json;

TEST(ChromeTextTest, NamesWithQuotesNewlinesAndEmojiComeBack) {
  for (const std::string name :
       {"plain", "a \"quoted\" one", "back\\slash", "two\nlines\tand a tab",
        "\xf0\x9f\x94\xa5 fire", "", "/* */ </script>", "\x7f\x01"}) {
    EXPECT_EQ(Json::parse(JsonText(name)).get<std::string>(), name);
  }
}

TEST(ChromeTextTest, BytesThatAreNoUtf8GiveValidJson) {
  for (const std::string name :
       {"\xff\xfe", "\xc3", "a\xe2\x82", "\xed\xa0\x80", "\xc0\xaf", "\xf5\x80\x80\x80"}) {
    const std::string back = Json::parse(JsonText(name)).get<std::string>();
    EXPECT_NE(back.find("\xef\xbf\xbd"), std::string::npos) << name;
  }
  for (int byte = 0; byte < 256; ++byte) {
    const std::string name = "a" + std::string(1, static_cast<char>(byte)) + "b";
    EXPECT_TRUE(Json::accept(JsonText(name))) << byte;
  }
}

TEST(ChromeTextTest, LongNamesAreCutBetweenCharacters) {
  std::string name;
  for (int i = 0; i < 1000; ++i) name += "\xf0\x9f\x94\xa5";
  const std::string text = JsonText(name, 100);
  EXPECT_LE(text.size(), 110U);
  EXPECT_TRUE(Json::accept(text));
}

TEST(ChromeTextTest, TimesAreMicroseconds) {
  const auto at = [](int64_t ns) {
    return Json::parse(EventLine({TimelineEvent::Phase::kEnd, ns, 3, "row", "", ""}, 7));
  };
  EXPECT_EQ(at(1'234'567)["ts"].get<double>(), 1234.567);
  EXPECT_EQ(at(-1'000'005)["ts"].get<double>(), -1000.005);
  EXPECT_EQ(at(INT64_MIN)["pid"], 3);
  EXPECT_EQ(at(5)["tid"], 7);
  EXPECT_FALSE(at(5).contains("name"));
}

TEST(ChromeTextTest, ATickHasADurationOfZero) {
  const Json tick =
      Json::parse(EventLine({TimelineEvent::Phase::kTick, 0, 0, "row", "1", "\"bytes\":4"}, 1));
  EXPECT_EQ(tick["dur"], 0);
  EXPECT_EQ(tick["ph"], "X");
  EXPECT_EQ(tick["args"]["bytes"], 4);
}

}  // namespace
}  // namespace hvd
