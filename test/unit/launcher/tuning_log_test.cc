#include "launcher/tuning/tuning_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "test/fakes/temporary_folder.h"

namespace hvd {
namespace {

class TuningLogTest : public TemporaryFolderTest {
 protected:
  std::string Text() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(TuningLogTest, BeginsAnewAndGrows) {
  std::ofstream(path_) << "of a former job";
  ASSERT_TRUE(BeginTuningLog(path_, "header\n").ok());
  ASSERT_TRUE(AppendText(path_, "row\n").ok());
  EXPECT_EQ(Text(), "header\nrow\n");
}

TEST_F(TuningLogTest, ALinkOfAStrangerIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make one";
  std::ofstream(path_) << "precious";
  const std::string link = folder_ + "/log.csv";
  std::filesystem::create_symlink(path_, link);
  ASSERT_EQ(::lchown(link.c_str(), 65534, 65534), 0);
  EXPECT_THAT(BeginTuningLog(link, "header\n").message(),
              testing::HasSubstr("--autotune-log-file: " + link + " cannot be written: " + link +
                                 " is a link of another user"));
  EXPECT_FALSE(AppendText(link, "row\n").ok());
  EXPECT_EQ(Text(), "precious");
}

}  // namespace
}  // namespace hvd
