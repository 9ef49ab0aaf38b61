#include <gtest/gtest.h>

#include "launcher/doctor/findings/host_findings.h"

namespace hvd {
namespace {

std::vector<HostReport> Hosts(const std::vector<std::string>& pythons) {
  std::vector<HostReport> hosts;
  for (const std::string& python : pythons) {
    HostReport& host = hosts.emplace_back();
    host.name = "n" + std::to_string(hosts.size() - 1);
    host.examined = true;
    host.facts.python_version = python;
  }
  return hosts;
}

std::string PythonOf(const HostFacts& facts) { return facts.python_version; }

TEST(FindingGroups, HostsOfWhichTheSameIsSaidAreOneFinding) {
  const std::vector<HostReport> hosts = Hosts({"a", "", "b", "a"});
  FindingGroups groups(hosts);
  groups.Add(
      Severity::kError, "kind", [](const HostReport& host) { return host.facts.python_version; },
      "fix");
  const std::vector<Finding> findings = groups.Release();
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].what, "a");
  EXPECT_EQ(findings[0].hosts, (std::vector<std::string>{"n0", "n3"}));
  EXPECT_EQ(findings[0].severity, Severity::kError);
  EXPECT_EQ(findings[1].hosts, std::vector<std::string>{"n2"});
  EXPECT_EQ(findings[1].fix, "fix");
}

TEST(FindingGroups, FactsOfAHostThatWasNotExaminedAreNotLookedAt) {
  std::vector<HostReport> hosts = Hosts({"a", "a"});
  hosts[0].examined = false;
  FindingGroups groups(hosts);
  groups.AddFacts("kind", PythonOf, "fix");
  const std::vector<Finding> findings = groups.Release();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].hosts, std::vector<std::string>{"n1"});
}

TEST(FindingGroups, AHostThatDiffersFromMostIsNamedWithBothValues) {
  const std::vector<HostReport> hosts = Hosts({"3.10", "3.11", "", "3.11"});
  FindingGroups groups(hosts);
  groups.AddDifferences("python", "has Python", PythonOf, "fix");
  const std::vector<Finding> findings = groups.Release();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].hosts, std::vector<std::string>{"n0"});
  EXPECT_EQ(findings[0].what, "has Python 3.10, where most have 3.11");
}

TEST(FindingGroups, EqualAndUnknownValuesAreNoDifference) {
  const std::vector<HostReport> hosts = Hosts({"3.11", "", "3.11"});
  FindingGroups groups(hosts);
  groups.AddDifferences("python", "has Python", PythonOf, "fix");
  EXPECT_TRUE(groups.Release().empty());
}

}  // namespace
}  // namespace hvd
