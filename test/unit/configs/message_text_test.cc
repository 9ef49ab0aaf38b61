#include "configs/message_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace hvd {
namespace {

TEST(MessageText, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(Printable("a\xff\xc3(\x9b"), "a\\xff\\xc3(\\x9b");
  EXPECT_EQ(Printable("\xc2\x9bm"), "\\xc2\\x9bm");  // a terminal may read U+009B as escape [
  EXPECT_EQ(Printable("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
            "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(Printable("\xe2\x82"), "\\xe2\\x82");
}

TEST(MessageText, EscapesControlCharacters) {
  EXPECT_EQ(Quoted("a\nb\tc\x1b[31m\x7f"), "'a\\nb\\tc\\x1b[31m\\x7f'");
}

TEST(MessageText, CutsLongTextAndSaysHowLongItWas) {
  std::string shown = Printable(std::string(10'000, 'x'));
  EXPECT_LT(shown.size(), 100u);
  EXPECT_THAT(shown, testing::EndsWith("... (10000 characters)"));
}

TEST(MessageText, NeverSplitsACharacter) {
  std::string text(59, 'x');
  for (int i = 0; i < 5; ++i) text += "\u00e9";
  EXPECT_EQ(Printable(text), std::string(59, 'x') + "... (69 characters)");
}

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

}  // namespace
}  // namespace hvd
