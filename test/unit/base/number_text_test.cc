#include "runtime/base/text/number_text.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace hvd {
namespace {

TEST(NumberText, TheWholeTextIsTheNumber) {
  EXPECT_EQ(ParseWhole<uint32_t>("0"), 0U);
  EXPECT_EQ(ParseWhole<uint32_t>("0042"), 42U);
  EXPECT_EQ(ParseWhole<int64_t>("-7"), -7);
  EXPECT_EQ(ParseWhole<uint64_t>("ffF", 16), 4095U);
  EXPECT_EQ(ParseWhole<double>("1e3"), 1000.0);
}

TEST(NumberText, OtherTextIsNone) {
  for (const char* text : {"", " ", "-", "+1", " 1", "1 ", "1x", "x1", "1.0", "0x1", "1e3"})
    EXPECT_FALSE(ParseWhole<int32_t>(text)) << "'" << text << "'";
  EXPECT_FALSE(ParseWhole<uint32_t>("-1"));
  EXPECT_FALSE(ParseWhole<uint32_t>(std::string_view("1\0", 2)));
  for (const char* text : {"", "-", "1.0x", "1,0", " 1"}) EXPECT_FALSE(ParseWhole<double>(text));
}

TEST(NumberText, ANumberThatDoesNotFitIsNone) {
  EXPECT_EQ(ParseWhole<uint16_t>("65535"), 65535);
  EXPECT_FALSE(ParseWhole<uint16_t>("65536"));
  EXPECT_EQ(ParseWhole<int64_t>("-9223372036854775808"), INT64_MIN);
  EXPECT_FALSE(ParseWhole<int64_t>("9223372036854775808"));
  EXPECT_FALSE(ParseWhole<uint64_t>("18446744073709551616"));
  EXPECT_FALSE(ParseWhole<double>("1e999"));
}

}  // namespace
}  // namespace hvd
