#include "configs/yaml_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

std::string Flat(std::string_view text) {
  Result<std::map<std::string, YamlValue>> values = ParseYaml(text, "f.yaml");
  if (!values.ok()) return values.status().message();
  std::string flat;
  for (const auto& [key, value] : *values) {
    flat += key + "=" + value.text + "@" + std::to_string(value.line) + " ";
  }
  return flat;
}

TEST(YamlFile, FlattensSections) {
  EXPECT_EQ(Flat("logging:\n  level: INFO\nlauncher:\n  verbose: true\n  empty:\n"),
            "launcher.verbose=true@4 logging.level=INFO@2 ");
  EXPECT_EQ(Flat(""), "");
  EXPECT_EQ(Flat("# nothing\n"), "");
}

TEST(YamlFile, SaysWhereItIsMalformed) {
  EXPECT_THAT(Flat("a: [1, 2\nb: }"), testing::StartsWith("f.yaml:"));
  EXPECT_EQ(Flat("- a\n- b\n"), "f.yaml:1:1: expected sections such as 'logging:'");
  EXPECT_EQ(Flat("a:\n  b: [1]\n"), "f.yaml:2:6: a.b must be a single value, not a list");
  EXPECT_EQ(Flat("a:\n  b: 1\n  b: 2\n"), "f.yaml:3:3: a.b appears twice, keep one");
  EXPECT_THAT(Flat("? [x]\n: 1\n"), testing::HasSubstr("a key must be a plain word"));
}

TEST(YamlFile, SurvivesHostileInput) {
  EXPECT_FALSE(Flat(std::string(100'000, '[')).empty());
  EXPECT_FALSE(Flat(std::string(1000, '\0')).empty());
  std::string deep;
  for (int i = 0; i < 40; ++i) deep += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  deep += std::string(41, ' ') + "b: 1\n";
  EXPECT_THAT(Flat(deep), testing::HasSubstr("nested too deeply"));
}

TEST(YamlFile, TakesValuesAndKeepsOtherKeys) {
  EXPECT_EQ(*WithValues("", "", {{"a.b", "1"}, {"a.c", "2"}}), "a:\n  b: 1\n  c: 2\n");
  const Result<std::string> text =
      WithValues("x: y\na:\n  b: 7\n  d: 8\n", "f.yaml", {{"a.b", "1"}, {"e.f", "two"}});
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(Flat(*text), "a.b=1@3 a.d=8@4 e.f=two@6 x=y@1 ");
  EXPECT_EQ(WithValues("- a\n", "f.yaml", {{"a", "1"}}).status().message(),
            "f.yaml:1:1: expected sections such as 'logging:'");
}

}  // namespace
}  // namespace hvd
