#include "launcher/process/spawn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "launcher/process/exec_size.h"
#include "launcher/process/local_process_host.h"

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

TEST(MustNameReader, WhereYamaAllowsItToParents) {
  EXPECT_TRUE(MustNameReader("1\n"));
  for (const char* text : {"0\n", "2\n", "3\n", ""}) EXPECT_FALSE(MustNameReader(text)) << text;
}

TEST(CannotStart, SaysWhatWouldWork) {
  SpawnRequest request;
  request.directory = "/tmp";
  request.environment = {"PATH=/a:/b"};
  request.argv = {"trian"};
  EXPECT_THAT(CannotStart(request, ENOENT), HasSubstr("'trian' was not found in PATH (/a:/b)"));
  request.argv = {"train.py"};
  EXPECT_THAT(CannotStart(request, ENOENT), HasSubstr("no script 'train.py' in /tmp"));
  request.argv = {"./train.py"};
  EXPECT_THAT(CannotStart(request, ENOENT),
              HasSubstr("'./train.py' does not exist (looked in /tmp)"));
  EXPECT_THAT(CannotStart(request, EACCES), HasSubstr("try python ./train.py"));
  request.argv = {"/etc"};
  EXPECT_THAT(CannotStart(request, EACCES), HasSubstr("is a directory"));
}

TEST(CannotStart, SaysWhyAWordIsNoProgram) {
  const auto said = [](std::vector<std::string> argv) {
    SpawnRequest request;
    request.directory = "/tmp";
    request.environment = {"PATH=/a"};
    request.argv = std::move(argv);
    return CannotStart(request, ENOENT);
  };
  EXPECT_EQ(said({"FOO=1", "python", "x.py"}),
            "the command 'FOO=1' sets a variable, which only a shell does; put -x FOO=1 before the "
            "command, or env in front of it");
  EXPECT_EQ(said({"python train.py --epochs 3"}),
            "the command 'python train.py --epochs 3' is a whole command in one word; leave out "
            "the quotes around it, or start a shell: sh -c '...'");
  EXPECT_EQ(said({"source", "env.sh"}),
            "the command 'source' is a part of the shell and no program; start a shell: bash -c "
            "'source env.sh && ...'");
  EXPECT_THAT(said({"\xe2\x80\x93np", "2"}), HasSubstr("has an en dash (U+2013) in it"));
  EXPECT_THAT(said({"python\xc2\xa0train.py"}), HasSubstr("has a no-break space (U+00A0) in it"));
  EXPECT_THAT(said({"a=b/c"}), HasSubstr("sets a variable"));
  EXPECT_THAT(said({"./a=b"}), HasSubstr("does not exist"));
  EXPECT_THAT(said({"1=b"}), HasSubstr("was not found in PATH"));
}

TEST(DescriptorShortage, NamesTheLimitAndTheNumber) {
  EXPECT_EQ(DescriptorShortage(120, 264, "a"), "");
  EXPECT_THAT(DescriptorShortage(120, 256, "a"),
              HasSubstr("the limit of open files on host a is 256 (ulimit -n), and its 120 ranks "
                        "need 264; raise it (ulimit -n 264, "));
  EXPECT_EQ(LinkShortage(120, 384, "a"), "");
  EXPECT_THAT(LinkShortage(120, 383, "a"), HasSubstr("need 384"));
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
