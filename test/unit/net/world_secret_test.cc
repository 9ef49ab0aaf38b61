#include "runtime/net/world_secret.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>

#include "runtime/net/namespaces.h"

namespace hvd {
namespace {

using Variables = std::map<std::string, std::string>;

Result<std::string> Find(const Variables& env) {
  return FindWorldSecret([&](const char* name) -> std::optional<std::string> {
    auto found = env.find(name);
    return found == env.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string FileWith(const std::string& text, mode_t mode) {
  std::string path = ::testing::TempDir() + "world_secret_test";
  std::remove(path.c_str());
  std::ofstream(path) << text;
  ::chmod(path.c_str(), mode);
  return path;
}

TEST(WorldSecret, TheUsersOwnComesBeforeTheLaunchers) {
  const std::string key = "0123456789abcdef-fedcba9876543210";
  Variables env;
  EXPECT_EQ(Find(env).value(), "");
  env["OMPI_MCA_orte_precondition_transports"] = key;
  EXPECT_EQ(Find(env).value(), "") << "Open MPI makes one of the job's number where mpirun did not";
  env["OMPI_MCA_orte_launch"] = "1";
  EXPECT_EQ(Find(env).value(), key);
  env["OMPI_MCA_orte_precondition_transports"] = "0123456789abcdef-fedcba987654321";
  EXPECT_EQ(Find(env).value(), "");
  env["HVD_WORLD_SECRET"] = "sixteen bytes, or";
  EXPECT_EQ(Find(env).value(), "sixteen bytes, or");
  env["HVD_WORLD_SECRET_FILE"] = FileWith("of the file, with a line end\n", 0600);
  EXPECT_EQ(Find(env).value(), "of the file, with a line end");
}

TEST(WorldSecret, OneThatIsNoneIsRefused) {
  EXPECT_FALSE(Find({{"HVD_WORLD_SECRET", "short"}}).ok());
  EXPECT_FALSE(Find({{"HVD_WORLD_SECRET", std::string(kMostSecret + 1, 'x')}}).ok());
  const std::string good(kLeastSecret, 'x');
  for (mode_t mode : {0644, 0640, 0660, 0604}) {
    EXPECT_FALSE(Find({{"HVD_WORLD_SECRET_FILE", FileWith(good, mode)}}).ok()) << mode;
  }
  EXPECT_TRUE(Find({{"HVD_WORLD_SECRET_FILE", FileWith(good, 0400)}}).ok());
  EXPECT_FALSE(Find({{"HVD_WORLD_SECRET_FILE", FileWith("", 0600)}}).ok());
  EXPECT_FALSE(Find({{"HVD_WORLD_SECRET_FILE", FileWith(std::string(100'000, 'x'), 0600)}}).ok());
  for (const char* path : {"/dev/zero", "/dev", "/no/such/file"}) {
    EXPECT_FALSE(Find({{"HVD_WORLD_SECRET_FILE", path}}).ok()) << path;
  }
}

TEST(Namespaces, OursAreToldFromNobodys) {
  EXPECT_TRUE(InOurNamespaces(::getpid()));
  EXPECT_TRUE(InOurNamespaces(::getppid()));
  EXPECT_FALSE(InOurNamespaces(0)) << "a process that is not seen from here";
  EXPECT_FALSE(InOurNamespaces(2'000'000'000)) << "one that has ended";
}

}  // namespace
}  // namespace hvd
