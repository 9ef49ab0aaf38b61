// The promises of every HostSource, checked for the real one and the fake one.
#include "discovery/host_source.h"

#include <gtest/gtest.h>

#include <set>

#include "discovery/fixed_hosts.h"
#include "test/fakes/scripted_hosts.h"

namespace hvd {
namespace {

std::unique_ptr<HostSource> Make(const std::string& kind, bool works) {
  if (kind == "scripted") {
    using Answer = ScriptedHosts::Answer;
    return std::make_unique<ScriptedHosts>(
        std::vector<Answer>{works ? Answer(std::vector<HostSlots>{{"a", 2}, {"b", 1}})
                                  : Answer(InvalidArgument("no"))});
  }
  return std::make_unique<FixedHosts>(
      works ? std::vector<HostSpec>{{"a", 2}, {"a", 1}} : std::vector<HostSpec>{},
      MachineFacts{[](const std::string&) { return true; }, [](bool) { return 1u; }});
}

class HostSourceContract : public ::testing::TestWithParam<std::string> {};

TEST_P(HostSourceContract, AnswersHostsWithSlotsEachOnceAndAlwaysTheSame) {
  auto source = Make(GetParam(), true);
  auto first = source->Hosts();
  ASSERT_TRUE(first.ok());
  std::set<std::string> names;
  for (const HostSlots& host : *first) {
    EXPECT_GT(host.slots, 0u);
    EXPECT_TRUE(names.insert(host.host).second) << host.host;
  }
  EXPECT_FALSE(names.empty());
  EXPECT_EQ(*source->Hosts(), *first);
}

TEST_P(HostSourceContract, SaysWhyThereIsNone) {
  auto hosts = Make(GetParam(), false)->Hosts();
  ASSERT_FALSE(hosts.ok());
  EXPECT_FALSE(hosts.status().message().empty());
}

INSTANTIATE_TEST_SUITE_P(Kinds, HostSourceContract, ::testing::Values("fixed", "scripted"));

}  // namespace
}  // namespace hvd
