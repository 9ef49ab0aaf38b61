#include "configs/config_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "test/fakes/temporary_folder.h"

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class StandingSettingsTest : public TemporaryFolderTest {
 protected:
  StandingSettings Read() {
    return ReadStandingSettings({{"HOME", folder_ + "/home"}}, folder_ + "/etc/hvdrun");
  }
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    ::chmod(path.c_str(), 0644);
    return path;
  }
  std::string OfUser() { return Write("home/.config/hvdrun/config.yaml", "a: 1\n"); }
  std::string OfMachine() { return Write("etc/hvdrun/config.yaml", "b: 2\n"); }
};

TEST_F(StandingSettingsTest, FilesThatAreMissingAreNoWarning) {
  EXPECT_THAT(Read().files, IsEmpty());
  EXPECT_THAT(Read().warnings, IsEmpty());
}

TEST_F(StandingSettingsTest, TheUsersFileComesBeforeTheMachines) {
  OfUser();
  OfMachine();
  const StandingSettings read = Read();
  ASSERT_EQ(read.files.size(), 2U);
  EXPECT_EQ(read.files[0].text, "a: 1\n");
  EXPECT_EQ(read.files[1].text, "b: 2\n");
}

TEST_F(StandingSettingsTest, TheFolderOfTheUserMayBeNamed) {
  OfUser();
  const StandingSettings read = ReadStandingSettings(
      {{"HOME", "/nowhere"}, {"XDG_CONFIG_HOME", folder_ + "/home/.config"}}, "/nowhere");
  ASSERT_EQ(read.files.size(), 1U);
  EXPECT_THAT(read.variables, ElementsAre("HOME", "XDG_CONFIG_HOME"));
}

TEST_F(StandingSettingsTest, AFileThatOthersMayWriteIsIgnored) {
  ::chmod(OfUser().c_str(), 0664);
  const StandingSettings read = Read();
  EXPECT_THAT(read.files, IsEmpty());
  EXPECT_THAT(read.warnings,
              ElementsAre(testing::AllOf(HasSubstr("config.yaml"), HasSubstr("by others"))));
}

TEST_F(StandingSettingsTest, AFolderThatOthersMayWriteIsNotTrusted) {
  const std::filesystem::path file = OfMachine();
  ::chmod(file.parent_path().c_str(), 0777);
  const StandingSettings read = Read();
  EXPECT_THAT(read.files, IsEmpty());
  EXPECT_THAT(read.warnings, ElementsAre(HasSubstr("its folder may be written by others")));
}

TEST_F(StandingSettingsTest, AFileOfAnotherUserIsIgnored) {
  const std::string file = OfUser();
  if (::chown(file.c_str(), 12345, 12345) != 0) GTEST_SKIP() << "only root gives files away";
  EXPECT_THAT(Read().files, IsEmpty());
  EXPECT_THAT(Read().warnings, ElementsAre(HasSubstr("belongs to another user")));
}

}  // namespace
}  // namespace hvd
