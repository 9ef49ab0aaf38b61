#include "launcher/agent/environment/env_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using ::testing::HasSubstr;

std::string Entries(std::string_view text) {
  Result<std::vector<GivenVariable>> parsed = ParseEnvFile(text, "job.env");
  if (!parsed.ok()) return "error: " + parsed.status().message();
  std::string out;
  for (const GivenVariable& v : *parsed) out += v.entry() + "|" + v.origin + ";";
  return out;
}

TEST(EnvFile, TakesValuesAsTheyAre) {
  EXPECT_EQ(Entries(""), "");
  EXPECT_EQ(Entries("# a comment\n\n  \nA=1\n"), "A=1|job.env:4;");
  EXPECT_EQ(Entries("A = 1 2  \nB=\nC="), "A=1 2|job.env:1;B=|job.env:2;C=|job.env:3;");
  EXPECT_EQ(Entries("A=1\r\nB=2\r\n"), "A=1|job.env:1;B=2|job.env:2;");
  EXPECT_EQ(Entries("export A=$(rm -rf x) ${B}"), "A=$(rm -rf x) ${B}|job.env:1;");
  EXPECT_EQ(Entries("a.b-c=x=y\xff"), "a.b-c=x=y\xff|job.env:1;");
  EXPECT_EQ(Entries("A=x # note\nB=x#y\nC=# note"), "A=x|job.env:1;B=x#y|job.env:2;C=|job.env:3;");
}

TEST(EnvFile, Quotes) {
  EXPECT_EQ(Entries("A='$x \\n \"'\n"), "A=$x \\n \"|job.env:1;");
  EXPECT_EQ(Entries("A=\"x\\n\\t\\\"\\\\\\$y\\z\" # note\n"), "A=x\n\t\"\\$y\\z|job.env:1;");
  EXPECT_EQ(Entries("A=\"one\ntwo # no comment\"\nB=3"),
            "A=one\ntwo # no comment|job.env:1;B=3|job.env:3;");
  EXPECT_EQ(Entries("A=it's\n"), "A=it's|job.env:1;");
}

TEST(EnvFile, ErrorsNameFileAndLine) {
  EXPECT_EQ(Entries("A=1\nnonsense\n"),
            "error: --env-file job.env:2: 'nonsense' has no '='; write NAME=value");
  EXPECT_THAT(Entries("=1"), HasSubstr("job.env:1: '' is no name"));
  EXPECT_THAT(Entries("A B=1"), HasSubstr("job.env:1: 'A B' is no name"));
  EXPECT_THAT(Entries("A=1\nB='x\ny\n"), HasSubstr("job.env:2: the quote ' is not closed"));
  EXPECT_THAT(Entries("A='x' y"), HasSubstr("job.env:1: 'y' after the closing quote"));
  EXPECT_THAT(Entries(std::string_view("A=\0", 3)), HasSubstr("job.env: it is not a text file"));
  EXPECT_THAT(Entries(std::string(10'000, 'x')), HasSubstr("xxx... (10000 characters)'"));
}

TEST(EnvFile, AFileThatCannotBeReadIsNamed) {
  Result<std::vector<GivenVariable>> read = ReadEnvFile("/no/such/file");
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.status().message(), HasSubstr("/no/such/file: it cannot be read: No such file"));
  EXPECT_FALSE(ReadEnvFile("/").ok()) << "a directory";
}

TEST(Passed, TakesValuesFromHereOrFromTheFlag) {
  auto lookup = [](const char* name) {
    return std::string(name) == "HERE" ? std::optional<std::string>("h") : std::nullopt;
  };
  Result<std::vector<GivenVariable>> passed = ParsePassed({"HERE", "A=1=2", "B="}, lookup);
  ASSERT_TRUE(passed.ok());
  ASSERT_EQ(passed->size(), 3U);
  EXPECT_EQ((*passed)[0].entry(), "HERE=h");
  EXPECT_EQ((*passed)[1].entry(), "A=1=2");
  EXPECT_EQ((*passed)[2].entry(), "B=");
  EXPECT_THAT(ParsePassed({"UNSET"}, lookup).status().message(),
              HasSubstr("-x UNSET: this variable is not set here"));
  for (const char* wrong : {"", "=", "=1", "A B=1"})
    EXPECT_FALSE(ParsePassed({wrong}, lookup).ok());
}

}  // namespace
}  // namespace hvd
