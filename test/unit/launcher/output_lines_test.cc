// The output of workers in whole lines, and prompts without a line end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/agent/workers/worker_streams.h"

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OutputLinesTest : public testing::Test {
 protected:
  asio::io_context io_;
  std::vector<std::string> passed_on_;
  OutputLines lines_{
      io_,
      [this](uint32_t slot, OutputStream stream, std::string_view first, std::string_view second) {
        if (first.empty() && second.empty()) return;
        passed_on_.push_back(std::to_string(slot) + (stream == OutputStream::kStdout ? ">" : "!") +
                             std::string(first) + std::string(second));
      }};
};

TEST_F(OutputLinesTest, StreamsOfASlotAreLinesOfTheirOwn) {
  lines_.Add(false);
  lines_.Append(0, OutputStream::kStdout, "a");
  lines_.Append(0, OutputStream::kStderr, "x\n");
  lines_.Append(0, OutputStream::kStdout, "b\nc");
  EXPECT_THAT(passed_on_, ElementsAre("0!x\n", "0>ab\n"));
  lines_.Flush(0, OutputStream::kStdout);
  lines_.Flush(0, OutputStream::kStdout);
  EXPECT_THAT(passed_on_, ElementsAre("0!x\n", "0>ab\n", "0>c"));
}

TEST_F(OutputLinesTest, ThePromptOfAWorkerAtATerminalIsShown) {
  lines_.Add(false);
  lines_.Add(true);
  lines_.Append(0, OutputStream::kStdout, "no prompt");
  lines_.Append(1, OutputStream::kStdout, "(Pdb) ");
  EXPECT_THAT(passed_on_, IsEmpty());
  io_.run();  // ends, since nothing else is waited for
  EXPECT_THAT(passed_on_, ElementsAre("1>(Pdb) "));
}

TEST_F(OutputLinesTest, NothingIsWaitedForBehindAWholeLine) {
  lines_.Add(true);
  lines_.Append(0, OutputStream::kStdout, "line\n");
  EXPECT_EQ(io_.run(), 0U);
}

TEST_F(OutputLinesTest, TheLastWordsAreThoseOnStderr) {
  lines_.Add(false);
  lines_.Append(0, OutputStream::kStdout, "out\n");
  lines_.Append(0, OutputStream::kStderr, "boom\n");
  EXPECT_EQ(lines_.LastOutput(0), "boom");
}

}  // namespace
}  // namespace hvd
