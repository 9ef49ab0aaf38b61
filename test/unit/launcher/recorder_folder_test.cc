// The folders of PyTorch's flight recorder: which of them go away, and with what.
#include "launcher/process/recorder_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace hvd {
namespace {

class RecorderFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(temporary_);
    std::filesystem::create_directories(temporary_);
    ::setenv("TMPDIR", temporary_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("TMPDIR");
    std::filesystem::remove_all(temporary_);
  }
  static std::string Made(const std::string& job, pid_t warden) {
    const std::string folder = RecorderFolder(job, warden);
    EXPECT_TRUE(MakeRecorderFolder(folder)) << folder;
    EXPECT_EQ(::mkfifo((RecorderStem(folder, 3) + "3.pipe").c_str(), 0600), 0);
    return folder;
  }
  static bool IsThere(const std::string& path) { return std::filesystem::exists(path); }

  const std::filesystem::path temporary_ =
      std::filesystem::path(testing::TempDir()) / "recorder_folder";
};

TEST_F(RecorderFolderTest, IsForOneAgentAlone) {
  const std::string folder = Made("job", 7);
  EXPECT_EQ(std::filesystem::status(folder).permissions(), std::filesystem::perms::owner_all);
  EXPECT_FALSE(MakeRecorderFolder(folder)) << "somebody has made it";
}

TEST_F(RecorderFolderTest, ADumpThatPyTorchHasWrittenStays) {
  const std::string first = Made("job", 7), second = Made("job", 8);
  std::ofstream(RecorderStem(second, 3) + "3") << "dump";
  RemoveRecorderFolder(first);
  RemoveRecorderFolder(second);
  EXPECT_FALSE(IsThere(first));
  EXPECT_TRUE(IsThere(RecorderStem(second, 3) + "3"));
  EXPECT_FALSE(IsThere(RecorderStem(second, 3) + "3.pipe"));
}

TEST_F(RecorderFolderTest, ThoseOfAJobThatIsOverGoAwayAndNoOthers) {
  const std::string first = Made("job", 7), second = Made("job", 8), other = Made("job2", 7);
  RemoveRecorderFolders("job");
  EXPECT_FALSE(IsThere(first) || IsThere(second));
  EXPECT_TRUE(IsThere(other));
}

}  // namespace
}  // namespace hvd
