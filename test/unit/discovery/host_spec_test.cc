#include "discovery/host_spec.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

using Specs = std::vector<HostSpec>;

std::string Complaint(const Result<Specs>& result) {
  return result.ok() ? "" : result.status().message();
}

TEST(HostList, ReadsNamesAndSlots) {
  EXPECT_EQ(*ParseHostList("localhost:4"), (Specs{{"localhost", 4}}));
  EXPECT_EQ(*ParseHostList("a"), (Specs{{"a", std::nullopt}}));
  EXPECT_EQ(*ParseHostList(" a:1 , b-2.x_y:3,c"),
            (Specs{{"a", 1}, {"b-2.x_y", 3}, {"c", std::nullopt}}));
  EXPECT_EQ(*ParseHostList("::1"), (Specs{{"::1", std::nullopt}}));
  EXPECT_EQ(*ParseHostList("[::1]:2,[fe80::1%eth0]"),
            (Specs{{"::1", 2}, {"fe80::1%eth0", std::nullopt}}));
}

TEST(HostList, RefusesTheRestInOneSentence) {
  for (std::string text : {"",
                           ":2",
                           ",a",
                           "a,",
                           "a,,b",
                           "localhost:two",
                           "localhost:",
                           "a:0",
                           "a:-1",
                           "a:+1",
                           "a:1x",
                           "a:65537",
                           "a:99999999999999999999",
                           "-x:2",
                           "a b:2",
                           "a;rm",
                           "[::1",
                           "[::1]2",
                           "user@a:2",
                           "a\n:2",
                           "\x1b[31m:1"}) {
    std::string complaint = Complaint(ParseHostList(text));
    EXPECT_NE(complaint, "") << text;
    EXPECT_EQ(complaint.find_first_of("\n\x1b"), std::string::npos) << complaint;
  }
  EXPECT_LT(Complaint(ParseHostList(std::string(10'000, ':'))).size(), 300u);
  EXPECT_LT(Complaint(ParseHostList("a:" + std::string(10'000, '9'))).size(), 400u);
}

TEST(HostFile, ReadsEveryUsualForm) {
  EXPECT_EQ(
      *ParseHostFile("# my hosts\n\n  \t\na slots=2\nb slots=3 max_slots=8  # two\r\nc:4\nd", "f"),
      (Specs{{"a", 2}, {"b", 3}, {"c", 4}, {"d", std::nullopt}}));
}

TEST(HostFile, NamesFileAndLine) {
  EXPECT_TRUE(Complaint(ParseHostFile("a\n\nb slots=x\n", "hosts")).starts_with("hosts, line 3: "));
  EXPECT_NE(Complaint(ParseHostFile("a 4\n", "hosts")), "");
  EXPECT_NE(Complaint(ParseHostFile("a:2 slots=4\n", "hosts")), "");
  EXPECT_EQ(Complaint(ParseHostFile("# nobody\n", "hosts")), "the host file hosts names no host");
}

}  // namespace
}  // namespace hvd
