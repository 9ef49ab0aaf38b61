#include "launcher/job/report/failure_hint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

TEST(IsolatingOption, IsFoundBeforeTheScriptOnly) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> kTable = {
      {{"python", "-E", "train.py"}, "-E"},
      {{"/usr/bin/python3", "-I", "-m", "train"}, "-I"},
      {{"python3.11", "-u", "-sE", "train.py"}, "-sE"},
      {{"env", "A=1", "python", "-W", "ignore", "-E", "train.py"}, "-E"},
      {{"python", "-Wignore::E", "train.py"}, ""},
      {{"python", "-c", "print()", "-E"}, ""},
      {{"python", "-mtimeIt", "-E"}, ""},
      {{"python", "train.py", "-E"}, ""},
      {{"python", "--version"}, ""},
      {{"python"}, ""},
      {{"sh", "-E"}, ""},
      {{}, ""}};
  for (const auto& [command, option] : kTable)
    EXPECT_EQ(IsolatingOption(command), option) << ::testing::PrintToString(command);
}

TEST(FailureHint, IsAboutThePackageThatWasNotFound) {
  const std::string words = "ModuleNotFoundError: No module named 'horovod'";
  EXPECT_THAT(FailureHint({"python", "-E", "t.py"}, words),
              ::testing::HasSubstr("With -E Python ignores PYTHONPATH"));
  EXPECT_EQ(FailureHint({"python", "t.py"}, words), "");
  EXPECT_EQ(FailureHint({"python", "-E", "t.py"}, "No module named 'numpy'"), "");
}

TEST(FailureHint, NamesTheServerThatHasThePortOfMasterPort) {
  const char* words = "OSError: [Errno 98] Address already in use";
  EXPECT_EQ(FailureHint({"python", "t.py"}, words), "");
  EXPECT_THAT(FailureHint({"python", "t.py"}, words, "another user (uid 7) listens there"),
              testing::HasSubstr("another user (uid 7) listens there; start the job again"));
  EXPECT_EQ(FailureHint({"python", "t.py"}, "KeyError: 1", "another user listens there"), "");
}

}  // namespace
}  // namespace hvd
