#include "runtime/base/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "test/fakes/temporary_folder.h"

namespace hvd {
namespace {

using testing::HasSubstr;

class OutputFileTest : public TemporaryFolderTest {
 protected:
  OutputFileTest() { std::ofstream(victim_) << "precious"; }
  static std::string Text(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const std::string victim_ = folder_ + "/victim";
};

TEST_F(OutputFileTest, ALinkOfTheUsersOwnIsFollowed) {
  std::filesystem::create_directory(folder_ + "/disk");
  std::filesystem::create_symlink("disk/real", path_);
  Result<std::string> real = PathForOutput(path_);
  ASSERT_TRUE(real.ok());
  EXPECT_EQ(*real, folder_ + "/disk/real");
  ASSERT_TRUE(OpenForOutput(path_, O_TRUNC, 0600).ok());
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/disk/real"));
}

TEST_F(OutputFileTest, ALinkOfAStrangerIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make one";
  std::filesystem::create_symlink(victim_, folder_ + "/theirs");
  ASSERT_EQ(::lchown((folder_ + "/theirs").c_str(), 65534, 65534), 0);
  std::filesystem::create_symlink("theirs", path_);
  for (const std::string& path : {folder_ + "/theirs", path_}) {
    const Result<UniqueFd> file = OpenForOutput(path, O_TRUNC, 0600);
    ASSERT_FALSE(file.ok());
    EXPECT_THAT(file.status().message(), HasSubstr("is a link of another user (uid 65534)"));
  }
  EXPECT_EQ(Text(victim_), "precious");
}

TEST_F(OutputFileTest, LinksInACircleEnd) {
  std::filesystem::create_symlink("t", path_);
  std::filesystem::create_symlink(path_, folder_ + "/t");
  EXPECT_FALSE(OpenForOutput(folder_ + "/t", 0, 0600).ok());
}

TEST_F(OutputFileTest, OnlyARegularFileIsOpenedAndNobodyIsWaitedFor) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const int reader = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_THAT(OpenForOutput(path_, 0, 0600).status().message(), HasSubstr("no regular file"));
  ::close(reader);
  EXPECT_FALSE(OpenForOutput(path_, 0, 0600).ok());
  EXPECT_FALSE(OpenForOutput("/dev/null", 0, 0600).ok());
}

TEST_F(OutputFileTest, IsEmptiedOrAppendedTo) {
  for (const auto& [flags, text] : {std::pair(O_APPEND, "precious+"), std::pair(O_TRUNC, "+")}) {
    Result<UniqueFd> file = OpenForOutput(victim_, flags, 0600);
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(::write(file->get(), "+", 1), 1);
    EXPECT_EQ(Text(victim_), text);
  }
}

}  // namespace
}  // namespace hvd
