#include "launcher/process/spawn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "launcher/process/exec_size.h"

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

TEST(CannotStart, ShowsNoControlCharactersAndNoEndlessNames) {
  SpawnRequest request;
  request.directory = "/tmp";
  request.argv = {"a\x1b[31m\n" + std::string(10'000, 'x')};
  std::string said = CannotStart(request, ENOENT);
  EXPECT_LT(said.size(), 500U);
  EXPECT_THAT(said, HasSubstr("a\\x1b[31m\\nxxx"));
}

TEST(WhyTooLong, NamesTheLongest) {
  ExecLimits limits{100, 300};
  EXPECT_FALSE(WhyTooLong({"python"}, {"A=1"}, limits));
  EXPECT_FALSE(WhyTooLong({"python"}, {"A=" + std::string(98, 'x')}, limits));
  EXPECT_THAT(*WhyTooLong({"python"}, {"B=2", "A=" + std::string(99, 'x')}, limits),
              HasSubstr("the variable A is 101 bytes long, but the kernel takes at most 100"));
  EXPECT_THAT(*WhyTooLong({"python", std::string(101, 'x')}, {"B=2"}, limits),
              HasSubstr("the argument 'xxx"));
  std::vector<std::string> many(20, "ABCDEFGHI=1");
  EXPECT_THAT(*WhyTooLong({"python"}, many, limits), HasSubstr("of all"));
  EXPECT_GE(LimitsHere().all, 128U * 1024);
}

}  // namespace
}  // namespace hvd
