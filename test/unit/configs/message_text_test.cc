#include "configs/message_text.h"

#include <gtest/gtest.h>

#include <array>

namespace hvd {
namespace {

TEST(MessageText, CountsEdits) {
  struct Case {
    std::string_view a, b;
    int distance;
  };
  constexpr Case kCases[] = {{"", "", 0},       {"abc", "", 3},    {"abc", "abc", 0},
                             {"abc", "abd", 1}, {"abc", "acb", 1}, {"kitten", "sitting", 3}};
  for (const Case& c : kCases) EXPECT_EQ(EditDistance(c.a, c.b), c.distance) << c.a << " " << c.b;
}

TEST(MessageText, FindsTheNearestOrNothing) {
  constexpr std::array<std::string_view, 3> kWords = {"--verbose", "--version", "-np"};
  EXPECT_EQ(NearestOf("--verbos", kWords), "--verbose");
  EXPECT_EQ(NearestOf("--vesrion", kWords), "--version");
  EXPECT_EQ(NearestOf("-pn", kWords), "-np");
  EXPECT_EQ(NearestOf("--entirely-else", kWords), "");
  EXPECT_EQ(NearestOf(std::string(10'000, '-'), kWords), "");
}

TEST(TypographicSignIn, NamesTheFirst) {
  EXPECT_EQ(TypographicSignIn("plain - 'text' \xc3\xa9"), "");
  EXPECT_EQ(TypographicSignIn("a\xc2\xa0slots=2 \xe2\x80\x93x"), "a no-break space (U+00A0)");
  EXPECT_EQ(TypographicSignIn("\xe2\x80\x93np\xc2\xa0"), "an en dash (U+2013)");
  EXPECT_EQ(TypographicSignIn("\xe2\x80"), "");
}

}  // namespace
}  // namespace hvd
