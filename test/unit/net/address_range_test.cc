#include "runtime/net/address_range.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

bool InRange(const std::string& range, const std::string& numeric) {
  Result<AddressRange> parsed = ParseAddressRange(range);
  EXPECT_TRUE(parsed.ok()) << range;
  return parsed.ok() && Holds(*parsed, numeric);
}

TEST(AddressRange, HoldsWhatHasTheSameFirstBits) {
  EXPECT_TRUE(InRange("10.1.0.0/16", "10.1.255.3"));
  EXPECT_FALSE(InRange("10.1.0.0/16", "10.2.0.1"));
  EXPECT_TRUE(InRange("10.1.2.3/16", "10.1.0.1")) << "what is behind the bits does not count";
  EXPECT_TRUE(InRange("192.168.4.0/23", "192.168.5.255"));
  EXPECT_FALSE(InRange("192.168.4.0/23", "192.168.6.0"));
  EXPECT_TRUE(InRange("10.0.0.7/32", "10.0.0.7"));
  EXPECT_FALSE(InRange("10.0.0.7/32", "10.0.0.6"));
  EXPECT_TRUE(InRange("0.0.0.0/0", "203.0.113.9"));
  EXPECT_TRUE(InRange("fd00::/8", "fdff::1"));
  EXPECT_FALSE(InRange("fd00::/8", "fe80::1"));
  EXPECT_TRUE(InRange("2001:db8::/33", "2001:db8:7fff::1"));
  EXPECT_FALSE(InRange("2001:db8::/33", "2001:db8:8000::1"));
}

TEST(AddressRange, HoldsNothingOfTheOtherFamilyAndNoNonsense) {
  EXPECT_FALSE(InRange("0.0.0.0/0", "::1"));
  EXPECT_FALSE(InRange("::/0", "127.0.0.1"));
  EXPECT_FALSE(InRange("0.0.0.0/0", "name"));
}

TEST(AddressRange, RefusesWhatIsNone) {
  for (const char* bad : {"", "/", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0/8",
                          "10.0.0.0/8x", "10.0.0.0/ 8", "eth0/8", "::/129", "10.0.0.0/8/8"})
    EXPECT_FALSE(ParseAddressRange(bad).ok()) << bad;
  EXPECT_TRUE(LooksLikeRange("10.0.0.0/8"));
  EXPECT_FALSE(LooksLikeRange("eth0"));
}

}  // namespace
}  // namespace hvd
