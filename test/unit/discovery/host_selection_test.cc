// Which hosts a run may use, by its settings.
#include "discovery/host_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SelectHostsTest : public testing::Test {
 protected:
  Result<std::vector<HostSlots>> Select() {
    notes_.clear();
    return SelectHosts(settings_,
                       {[this](const std::string& path) -> Result<std::string> {
                          if (files_.contains(path)) return files_[path];
                          return Internal("cannot be opened: No such file or directory");
                        },
                        [this](const std::string& word) {
                          return WordFacts{files_.contains(word), false};
                        },
                        [](const std::vector<std::string>& names) {
                          std::set<std::string> own;
                          for (const std::string& name : names) {
                            if (name == "me" || name == "localhost") own.insert(name);
                          }
                          return own;
                        },
                        [] { return std::string("me"); }, [] { return 7U; }},
                       notes_);
  }
  std::string Error() {
    Result<std::vector<HostSlots>> hosts = Select();
    return hosts.ok() ? "" : hosts.status().message();
  }

  Settings settings_;
  std::map<std::string, std::string> files_;
  std::vector<std::string> notes_;
};

TEST_F(SelectHostsTest, UsesThisMachineWhenNoHostIsNamed) {
  settings_.num_proc = 4;
  EXPECT_EQ(*Select(), (std::vector<HostSlots>{{"me", 4}}));
}

TEST_F(SelectHostsTest, AllSlotsOfNamedHostsAreCountedUnlessOnlyTheirAgentsKnowThem) {
  settings_.hosts = "localhost,a:3,b:2";
  EXPECT_EQ(*SlotsOfAll(*Select()), 12);
  settings_.hosts = "a:3,b";
  EXPECT_EQ(SlotsOfAll(*Select()).status().message(),
            "-np is missing, and b is named without its slots: say -np, or b:4 where it has four");
  settings_.slots_per_host = 2;
  EXPECT_EQ(*SlotsOfAll(*Select()), 5);
  EXPECT_THAT(SlotsOfAll({{"a", 900'000}, {"b", 900'000}}).status().message(),
              HasSubstr("1800000 slots, more than the 1000000 processes"));
}

TEST_F(SelectHostsTest, PlaysHostsWithEnoughSlotsForAllProcesses) {
  settings_.num_proc = 5;
  settings_.hosts_per_machine = 2;
  EXPECT_EQ(*Select(), (std::vector<HostSlots>{{"host-0", 3}, {"host-1", 3}}));
  settings_.hosts = "localhost:8";
  EXPECT_EQ(*Select(), (std::vector<HostSlots>{{"host-0", 8}, {"host-1", 8}}));
  settings_.hosts = "localhost:8,a:8";
  EXPECT_THAT(Error(), HasSubstr("a is another one; leave one of them out"));
  settings_.hosts = "a:8";
  EXPECT_THAT(Error(), HasSubstr("a is another one"));
}

TEST_F(SelectHostsTest, GivesAHostWithoutANumberItsOwnSlots) {
  settings_.hosts = "me,a";
  EXPECT_EQ(*Select(),
            (std::vector<HostSlots>{
                {"me", 7}, {.host = "a", .slots = 1, .remote = true, .slots_known = false}}));
  settings_.slots_per_host = 3;
  EXPECT_EQ(*Select(),
            (std::vector<HostSlots>{{"me", 3}, {.host = "a", .slots = 3, .remote = true}}));
}

TEST_F(SelectHostsTest, ReadsAHostFile) {
  files_["hosts"] = "a slots=2\n";
  files_["empty"] = "";
  settings_.hostfile = "hosts";
  EXPECT_EQ(*Select(), (std::vector<HostSlots>{{.host = "a", .slots = 2, .remote = true}}));
  EXPECT_THAT(notes_, IsEmpty());
  settings_.hostfile = "empty";
  EXPECT_EQ(Error(), "the host file empty is empty; check its path");
  settings_.hostfile = "none";
  EXPECT_EQ(Error(),
            "the host file none cannot be opened: No such file or directory; check its path");
  settings_.hosts = "a:1";
  EXPECT_THAT(Error(), HasSubstr("-H and --hostfile both name the hosts"));
}

TEST_F(SelectHostsTest, SaysThatTheArgumentOfHIsAFile) {
  files_["./hosts"] = "a slots=2\n";
  settings_.hosts = "./hosts";
  EXPECT_EQ(*Select(), (std::vector<HostSlots>{{.host = "a", .slots = 2, .remote = true}}));
  EXPECT_THAT(notes_, ElementsAre("-H ./hosts is a file and is read as a host file (--hostfile)"));
}

TEST_F(SelectHostsTest, SaysThatItDoesNotLogInToThisMachine) {
  settings_.hosts = "bob@me:1,bob@a:1";
  EXPECT_EQ(Select()->size(), 2U);
  ASSERT_EQ(notes_.size(), 1U);
  EXPECT_THAT(notes_[0], HasSubstr("bob@me is this machine, where hvdrun does not log in"));
}

TEST(CheckNoHostInCommand, FindsAHostThatStandsWhereTheCommandBegins) {
  Settings settings;
  EXPECT_TRUE(CheckNoHostInCommand(settings, {"b:1"}).ok()) << "no -H";
  settings.hosts = "a:1,";
  EXPECT_THAT(CheckNoHostInCommand(settings, {"b:1", "python"}).message(), HasSubstr("-H a:1,b:1"));
  for (const char* command : {"python", "./b:1", ":1", "b:", "b:x"})
    EXPECT_TRUE(CheckNoHostInCommand(settings, {command}).ok()) << command;
  EXPECT_TRUE(CheckNoHostInCommand(settings, {}).ok());
}

}  // namespace
}  // namespace hvd
