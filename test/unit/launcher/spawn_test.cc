#include "launcher/spawn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace hvd {
namespace {

using ::testing::HasSubstr;

TEST(FindProgram, LooksInPathLikeAShell) {
  EXPECT_EQ(FindProgram("sh", "/nowhere:/bin", "/").path, "/bin/sh");
  EXPECT_EQ(FindProgram("sh", "/nowhere", "/").error, ENOENT);
  EXPECT_EQ(FindProgram("sh", "bin", "/usr").path, "/usr/bin/sh");
  EXPECT_EQ(FindProgram("sh", "", "/bin").path, "/bin/./sh")
      << "an empty entry is the working directory";
  EXPECT_EQ(FindProgram("passwd", "/etc", "/").error, EACCES);
  EXPECT_EQ(FindProgram("", "/bin", "/").error, ENOENT);
}

TEST(FindProgram, TakesAPathAsItIs) {
  EXPECT_EQ(FindProgram("/bin/sh", "", "/").path, "/bin/sh");
  EXPECT_EQ(FindProgram("./sh", "", "/bin").path, "/bin/./sh");
  EXPECT_EQ(FindProgram("./sh", "/bin", "/etc").error, ENOENT);
  EXPECT_EQ(FindProgram("/bin", "", "/").error, EACCES);
}

TEST(CannotStart, SaysWhatWouldWork) {
  SpawnRequest request;
  request.directory = "/tmp";
  request.environment = {"PATH=/a:/b"};
  request.argv = {"trian"};
  EXPECT_THAT(CannotStart(request, ENOENT), HasSubstr("'trian' was not found in PATH (/a:/b)"));
  request.argv = {"./train.py"};
  EXPECT_THAT(CannotStart(request, ENOENT),
              HasSubstr("'./train.py' does not exist (looked in /tmp)"));
  EXPECT_THAT(CannotStart(request, EACCES), HasSubstr("try python ./train.py"));
  request.argv = {"/etc"};
  EXPECT_THAT(CannotStart(request, EACCES), HasSubstr("is a directory"));
}

}  // namespace
}  // namespace hvd
