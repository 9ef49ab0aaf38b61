#include <gtest/gtest.h>

#include "launcher/output/text/phrases.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;

TEST(SecondsText, IsAsPreciseAsAReaderNeeds) {
  EXPECT_EQ(SecondsText(milliseconds(0)), "0 s");
  EXPECT_EQ(SecondsText(milliseconds(250)), "0.25 s");
  EXPECT_EQ(SecondsText(milliseconds(3210)), "3.2 s");
  EXPECT_EQ(SecondsText(milliseconds(10'003)), "10 s");
  EXPECT_EQ(SecondsText(milliseconds(59'990)), "60 s");
}

}  // namespace
}  // namespace hvd
