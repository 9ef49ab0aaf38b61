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

}  // namespace
}  // namespace hvd
