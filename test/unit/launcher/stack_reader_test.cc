#include "launcher/stall/stack_reader.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

const std::vector<ProcessInfo> kProcesses = {
    {10, 1, 10, 'S', 0}, {11, 10, 10, 'S', 0}, {12, 10, 10, 'Z', 0}, {13, 11, 10, 'S', 0}};

TEST(PythonBelow, IsTheNearestProcessThatRunsIt) {
  const auto is = [](pid_t wanted) { return [wanted](pid_t pid) { return pid == wanted; }; };
  EXPECT_EQ(PythonBelow(10, kProcesses, is(10)), 10);
  EXPECT_EQ(PythonBelow(10, kProcesses, is(13)), 13) << "behind sh -c and uv run";
  EXPECT_EQ(PythonBelow(10, kProcesses, is(12)), 10) << "it has ended";
  EXPECT_EQ(PythonBelow(10, kProcesses, is(99)), 10) << "none does";
}

TEST(WhyNoStacks, NamesWhatWouldHelp) {
  const std::string stacks = "Process 1: python\nThread 1 (idle): \"MainThread\"\n", none;
  const std::string forbidden = "Error: no\nPermission denied\n", other = "Error: no version\n";
  EXPECT_EQ(WhyNoStacks(&stacks, true), "");
  EXPECT_EQ(WhyNoStacks(nullptr, true), "--no-stall-check-stacks forbids it");
  EXPECT_EQ(WhyNoStacks(&none, true), "py-spy did not answer within 5 s");
  EXPECT_EQ(WhyNoStacks(&other, true), "py-spy says: Error: no version");
  EXPECT_NE(WhyNoStacks(&forbidden, true).find("SYS_PTRACE"), std::string::npos);
  EXPECT_NE(WhyNoStacks(nullptr, false).find("hvdrun[stacks]"), std::string::npos);
  const std::string not_attached =
      "Error: Failed to get stack traces\n\nCaused by:\n    0: Failed to suspend process\n"
      "    1: EPERM: Operation not permitted\n";
  for (const char* behind : {"", "\nStack backtrace:\n   0: py_spy::main\n   1: main\n"}) {
    const std::string said = not_attached + behind;
    EXPECT_EQ(WhyNoStacks(&said, true),
              "py-spy says: EPERM: Operation not permitted; docker run --cap-add SYS_PTRACE or "
              "sysctl kernel.yama.ptrace_scope=0 would allow it");
  }
}

}  // namespace
}  // namespace hvd
