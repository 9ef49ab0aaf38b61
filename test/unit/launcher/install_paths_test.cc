#include "launcher/channels/bundle/install_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "test/fakes/temporary_folder.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

TEST(PathsBeside, AreRelativeToTheProgram) {
  InstallPaths paths = PathsBeside("/opt/x/bin/hvdrun");
  EXPECT_EQ(paths.runtime, "/opt/x/lib/libhvd.so");
  EXPECT_EQ(paths.python, "/opt/x/lib/hvdrun/python");
  EXPECT_EQ(PackageSources(paths), "/opt/x/lib/hvdrun/python/horovod");
  EXPECT_EQ(paths.startup, "/opt/x/lib/hvdrun/python/horovod/common/startup");
}

class WheelPaths : public TemporaryFolderTest {
 protected:
  // A wheel in `packages`, which lies below the prefix.
  void Install(const std::string& packages) {
    fs::create_directories(Path(packages + "/horovod/lib"));
    std::ofstream(Path(packages + "/horovod/lib/libhvd.so")) << "x";
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string Found() const { return PathsBeside(Path("bin/hvdrun")).runtime; }
};

TEST_F(WheelPaths, LieInThePackageOfTheEnvironmentThatHasTheProgram) {
  for (const char* packages : {"lib/python3.8/site-packages", "lib64/python3.13/site-packages",
                               "lib/python3/dist-packages", "lib/python3.11/dist-packages", ""}) {
    Install(packages);
    const std::string package = Path(std::string(packages) + "/horovod");
    const InstallPaths paths = PathsBeside(Path("bin/hvdrun"));
    EXPECT_TRUE(fs::equivalent(paths.runtime, package + "/lib/libhvd.so"));
    EXPECT_TRUE(fs::equivalent(PackageSources(paths), package));
    EXPECT_EQ(paths.python, PackageSources(paths) + "/lib/python");
    EXPECT_EQ(paths.startup, PackageSources(paths) + "/common/startup");
    fs::remove_all(package);
  }
}

TEST_F(WheelPaths, AreOfTheInstalledTreeWhereThereIsOne) {
  Install("lib/python3.8/site-packages");
  std::ofstream(Path("lib/libhvd.so")) << "x";
  EXPECT_EQ(Found(), Path("lib/libhvd.so"));
}

// All of them share bin/hvdrun, which is the last one's.
TEST_F(WheelPaths, AreThoseInstalledLastWhereSeveralPythonsHaveThePackage) {
  Install("lib/python3.8/site-packages");
  Install("lib/python3.13/site-packages");
  for (const char* last : {"lib/python3.8", "lib/python3.13"}) {
    const std::string folder = Path(std::string(last) + "/site-packages/horovod/lib");
    fs::last_write_time(folder, fs::file_time_type::clock::now() + std::chrono::hours(1));
    EXPECT_EQ(Found(), folder + "/libhvd.so");
    fs::last_write_time(folder, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
}

TEST_F(WheelPaths, TakeTheSourcesOfAnEditableInstallationFromWhereTheyLie) {
  Install("lib/python3.8/site-packages");
  std::ofstream(Path("lib/python3.8/site-packages/horovod/lib/sources")) << "/src/horovod\n";
  EXPECT_EQ(PackageSources(PathsBeside(Path("bin/hvdrun"))), "/src/horovod");
  EXPECT_EQ(PathsBeside(Path("bin/hvdrun")).startup, "/src/horovod/common/startup");
}

TEST_F(WheelPaths, SayThatAnotherDistributionHasTheSameFolder) {
  Install("lib/python3.8/site-packages");
  const InstallPaths paths = PathsBeside(Path("bin/hvdrun"));
  fs::create_directory(Path("lib/python3.8/site-packages/hvdrun-0.1.0.dist-info"));
  fs::create_directory(Path("lib/python3.8/site-packages/horovod_extras-1.dist-info"));
  fs::create_directory(Path("lib/python3.8/site-packages/horovod-0.28.1+hvdrun.dist-info"));
  EXPECT_EQ(OverlaidPackage(paths), "");
  fs::create_directory(Path("lib/python3.8/site-packages/horovod-0.28.1.dist-info"));
  EXPECT_THAT(OverlaidPackage(paths),
              HasSubstr("pip uninstall -y horovod hvdrun && pip install hvdrun"));
  EXPECT_EQ(OverlaidPackage({"/opt/x/lib/libhvd.so", "/opt/x/lib/hvdrun/python"}), "")
      << "no wheel";
}

}  // namespace
}  // namespace hvd
