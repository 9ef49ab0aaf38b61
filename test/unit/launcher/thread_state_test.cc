// The state of a process as /proc shows it, by texts of it.
#include "launcher/process/thread_state.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace hvd {
namespace {

TEST(ThreadState, ReadsTheStateAndTheTicksBehindAnyName) {
  const ThreadState found =
      ParseStat("7 (a) R (b) S 1 7 7 0 -1 4194560 100 0 0 0 12 30 0 0 20 0 1 0 99 1 1");
  EXPECT_EQ(found.state, "S");
  EXPECT_EQ(found.cpu_ticks, 42U);
  EXPECT_EQ(ParseStat("").state, "");
  EXPECT_EQ(ParseStat("7 (a").state, "");
}

TEST(ThreadState, NamesTheSystemCall) {
  EXPECT_EQ(ParseSyscall("230 0x1 0x0 0x7ffc 0x7ffc 0x7f 0x7f"), "clock_nanosleep");
  EXPECT_EQ(ParseSyscall("100000 0x1"), "number 100000");
  EXPECT_EQ(ParseSyscall("running\n"), "");
  EXPECT_EQ(ParseSyscall("-1 0x7ffc 0x7f"), "");
  EXPECT_EQ(ParseSyscall(""), "");
}

TEST(ThreadState, KnowsWhichSignalsAreHandled) {
  const char* status = "Name:\tx\nSigBlk:\tffffffffffffffff\nSigCgt:\t0000008000000002\n";
  EXPECT_TRUE(ParseHandles(status, 40));
  EXPECT_TRUE(ParseHandles(status, 2));
  EXPECT_FALSE(ParseHandles(status, 41));
  EXPECT_FALSE(ParseHandles(status, 0));
  EXPECT_FALSE(ParseHandles("", 40));
}

TEST(ThreadState, CountsTheWorkOfAProcessAndOfItsEndedChildren) {
  EXPECT_EQ(ParseTicks("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 1 2 30 400 20 0"), 433U);
  EXPECT_EQ(ParseTicks("7 (a"), 0U);
  const char* status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t7\n";
  EXPECT_EQ(ParseCount(status, "voluntary_ctxt_switches"), 12U);
  EXPECT_EQ(ParseCount("rchar: 5\nwchar: 6", "wchar"), 6U);
  EXPECT_EQ(ParseCount("rchars: 5\nrchar:\n", "rchar"), 0U);
  EXPECT_EQ(ParseCount("", "rchar"), 0U);
}

TEST(ThreadState, OfThisProcessIsRunning) {
  EXPECT_EQ(ReadThreadState(::getpid()).state, "R");
  EXPECT_EQ(ReadThreadState(-1).state, "");
}

}  // namespace
}  // namespace hvd
