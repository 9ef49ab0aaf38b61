#include "runtime/base/text/printable_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

TEST(PrintableText, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(Printable("a\xff\xc3(\x9b"), "a\\xff\\xc3(\\x9b");
  EXPECT_EQ(Printable("\xc2\x9bm"), "\\xc2\\x9bm");  // a terminal may read U+009B as escape [
  EXPECT_EQ(Printable("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
            "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(Printable("\xe2\x82"), "\\xe2\\x82");
}

TEST(PrintableText, EscapesControlCharacters) {
  EXPECT_EQ(Quoted("a\nb\tc\x1b[31m\x7f"), "'a\\nb\\tc\\x1b[31m\\x7f'");
}

TEST(PrintableText, CutsLongTextAndSaysHowLongItWas) {
  std::string shown = Printable(std::string(10'000, 'x'));
  EXPECT_LT(shown.size(), 100u);
  EXPECT_THAT(shown, testing::EndsWith("... (10000 characters)"));
}

TEST(PrintableText, NeverSplitsACharacter) {
  std::string text(59, 'x');
  for (int i = 0; i < 5; ++i) text += "\u00e9";
  EXPECT_EQ(Printable(text), std::string(59, 'x') + "... (69 characters)");
}

}  // namespace
}  // namespace hvd
