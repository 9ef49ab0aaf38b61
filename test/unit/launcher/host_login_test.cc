#include "launcher/agent/environment/host_login.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace hvd {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::StartsWith;

class HostLoginTest : public testing::Test {
 protected:
  HostLogin Login(const std::vector<std::string>& driver) {
    LoginFacts facts;
    facts.variable = [this](const char* name) -> std::optional<std::string> {
      const auto found = here_.find(name);
      return found == here_.end() ? std::nullopt : std::optional(found->second);
    };
    facts.home = "/home/bob";
    facts.user = "bob";
    facts.host_name = "node2";
    facts.usable_directory = [this](const std::string& path, bool) {
      return usable_.contains(path);
    };
    return LoginOf(driver, facts);
  }

  std::map<std::string, std::string> here_;
  std::set<std::string> usable_;
};

TEST_F(HostLoginTest, IsThatOfTheAgentElseOfTheUserDatabase) {
  here_ = {{"HOME", "/data/bob"}, {"USER", "bobby"}};
  EXPECT_THAT(Login({"HOME=/head/ann", "USER=ann"}).variables,
              ElementsAre("HOME=/data/bob", "USER=bobby", "LOGNAME=bob"));
}

TEST_F(HostLoginTest, NamesItsHostWhereHvdrunsEnvironmentDoes) {
  EXPECT_THAT(Login({"HOSTNAME=node1"}).variables, Contains("HOSTNAME=node2"));
  EXPECT_THAT(Login({}).variables, Not(Contains(StartsWith("HOSTNAME="))));
}

TEST_F(HostLoginTest, KeepsAFolderForTemporaryFilesThatExistsHere) {
  EXPECT_THAT(Login({"TMPDIR=/fast"}).absent, ElementsAre("TMPDIR"));
  usable_ = {"/fast", "/scratch"};
  here_ = {{"TMPDIR", "/scratch"}};
  const HostLogin kept = Login({"TMPDIR=/fast"});
  EXPECT_THAT(kept.absent, Not(Contains("TMPDIR")));
  EXPECT_THAT(kept.variables, Not(Contains(StartsWith("TMPDIR="))));
  EXPECT_THAT(Login({"TMPDIR=/gone"}).variables, Contains("TMPDIR=/scratch"));
}

TEST_F(HostLoginTest, HasTheRuntimeFolderOfItsOwnSession) {
  EXPECT_THAT(Login({"XDG_RUNTIME_DIR=/run/user/0"}).absent, ElementsAre("XDG_RUNTIME_DIR"));
  usable_ = {"/run/user/0", "/run/user/7"};
  EXPECT_TRUE(Login({"XDG_RUNTIME_DIR=/run/user/0"}).absent.empty()) << "of the same user";
  here_ = {{"XDG_RUNTIME_DIR", "/run/user/7"}};
  EXPECT_THAT(Login({"XDG_RUNTIME_DIR=/run/user/0"}).variables,
              Contains("XDG_RUNTIME_DIR=/run/user/7"));
}

}  // namespace
}  // namespace hvd
