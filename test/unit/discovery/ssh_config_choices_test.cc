#include "discovery/ssh_config_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace hvd {
namespace {

using ::testing::Eq;
using ::testing::Ne;
using ::testing::Optional;

const std::map<std::string, std::vector<std::string>> kFiles = {
    {"none/*.conf", {}},
    {"common", {"ServerAliveInterval 5\nHost gpu*\n Port 2222\n"}},
    {"round", {"Include round\n"}},
};

SshConfigChoices ChoicesOf(std::string_view text) {
  SshConfigChoices choices;
  choices.Read(text, [](const std::string& pattern) -> std::optional<std::vector<std::string>> {
    const auto found = kFiles.find(pattern);
    if (found == kFiles.end()) return std::nullopt;
    return found->second;
  });
  return choices;
}

TEST(SshConfigChoices, HostsOfTheSameBlocksHaveOneKey) {
  const SshConfigChoices choices = ChoicesOf(
      "User bob\nInclude none/*.conf common\n# Host in a comment\n"
      "Host node? !node3\n  User alice\nhost=login *.example\n  HostName login.example\nHost *\n");
  const auto node = choices.KeyOf("node1");
  EXPECT_THAT(choices.KeyOf("node2"), Optional(Eq(*node)));
  EXPECT_THAT(choices.KeyOf("node3"), Optional(Ne(*node))) << "negated";
  EXPECT_THAT(choices.KeyOf("node10"), Optional(Eq(*choices.KeyOf("node3"))));
  EXPECT_THAT(choices.KeyOf("gpu1"), Optional(Ne(*choices.KeyOf("node3")))) << "included";
  EXPECT_EQ(choices.KeyOf("login"), std::nullopt) << "its name is another one";
  EXPECT_EQ(choices.KeyOf("a.example"), std::nullopt);
}

TEST(SshConfigChoices, OtherNamesThanPlainOnesAreForSsh) {
  const SshConfigChoices choices = ChoicesOf("");
  EXPECT_THAT(choices.KeyOf("node1.example-site.org"), Optional(Eq("")));
  for (const char* name : {"", "Node1", "fe80::1", "a b", "a%h", "x/y"}) {
    EXPECT_EQ(choices.KeyOf(name), std::nullopt) << name;
  }
}

TEST(SshConfigChoices, WhatOnlySshKnowsIsLeftToSsh) {
  for (const char* text :
       {"Match host a*\nUser b\n", "match exec true\n", "CanonicalizeHostname yes\n",
        "CanonicalDomains example\n", "Include unknown\n", "Include round\n", "Hostname x\n",
        "Host a\nInclude common\n", "Host \"a b\"\n", "Host A*\n", "Host a # b\n", "\"Host\" a\n",
        "Include \"common\"\n", "Tag x\n"}) {
    EXPECT_EQ(ChoicesOf(text).KeyOf("node1"), std::nullopt) << text;
  }
}

TEST(SshConfigChoices, AnAnswerIsMadeOfAnother) {
  const std::string answer =
      "host node1\nuser bob\nhostname node1\nport 22\nproxycommand nc %h %p\n";
  EXPECT_EQ(SshAnswerFor("node2", "node1", answer),
            "host node2\nuser bob\nhostname node2\nport 22\nproxycommand nc %h %p\n");
  EXPECT_EQ(SshAnswerFor("node2", "node1", answer + "controlpath /tmp/node1\n"), std::nullopt)
      << "the name went into a value";
  EXPECT_EQ(SshAnswerFor("node2", "node1", "host node1\nhostname 10.0.0.1\n"), std::nullopt);
}

}  // namespace
}  // namespace hvd
