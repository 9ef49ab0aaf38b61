#include "launcher/live/stacks_text.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

std::string Stacks(int pid, const std::string& line) {
  const std::string number = std::to_string(pid);
  return "Process " + number +
         ": python train.py\nPython v3.11.2 (/usr/bin/python3.11)\n\nThread " + number +
         " (idle): \"MainThread\"\n    " + line + "\n";
}

TEST(StacksText, EqualStacksAreShownOnce) {
  EXPECT_EQ(StacksText({{2, "b", Stacks(30, "all_reduce (c10d.py:9)"), ""},
                        {0, "a", Stacks(10, "save (train.py:57)"), ""},
                        {1, "a", Stacks(20, "all_reduce (c10d.py:9)"), ""}}),
            "rank 0 on host a:\n"
            "  Thread (idle): \"MainThread\"\n"
            "      save (train.py:57)\n"
            "ranks 1-2 on hosts a, b:\n"
            "  Thread (idle): \"MainThread\"\n"
            "      all_reduce (c10d.py:9)\n");
}

TEST(StacksText, JsonHasEachRank) {
  EXPECT_EQ(
      StacksJson({{1, "b", "f \"x\"\n", ""}, {0, "a", "", "py-spy is not there"}}),
      "[{\"rank\": 1, \"host\": \"b\", \"stacks\": \"f \\\"x\\\"\\n\", \"reason\": null},\n"
      " {\"rank\": 0, \"host\": \"a\", \"stacks\": null, \"reason\": \"py-spy is not there\"}]\n");
  EXPECT_EQ(StacksJson({}), "[]\n");
}

TEST(StacksText, ARankThatCannotBeReadSaysWhy) {
  EXPECT_EQ(StacksText({{0, "a", "", "py-spy is not there"}, {1, "a", "", "py-spy is not there"}}),
            "ranks 0-1 on host a: no stacks; py-spy is not there\n");
}

TEST(StacksText, ALongPathKeepsItsLine) {
  const std::string frame = "    f (/a/" + std::string(200, 'x') + "/train.py:41)";
  EXPECT_EQ(StacksText({{0, "a", frame + "\n", ""}}), "rank 0 on host a:\n  " + frame + "\n");
}

}  // namespace
}  // namespace hvd
