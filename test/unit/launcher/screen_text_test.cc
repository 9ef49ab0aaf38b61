#include "launcher/output/screen_text.h"

#include <gtest/gtest.h>

#include <utility>

namespace hvd {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kError =
    "Traceback (most recent call last):\n  File \"train.py\", line 1, in "
    "<module>\nModuleNotFoundError: No module\n";

class Shown {
 public:
  explicit Shown(ScreenTextOptions options, OutputStream stream = OutputStream::kStderr)
      : text_(stream, std::move(options), line_) {}

  std::string Add(uint32_t rank, std::string_view bytes) {
    text_.Add(rank, bytes, now_);
    return Take();
  }
  std::string After(Duration time) {
    now_ += time;
    if (text_.deadline() && *text_.deadline() <= now_) text_.Due(now_);
    return Take();
  }
  std::string Finish() {
    text_.Finish();
    return Take();
  }

 private:
  std::string Take() { return std::exchange(line_.text, {}); }

  ScreenLine line_;
  ScreenText text_;
  TimePoint now_{std::chrono::hours(1)};
};

TEST(ScreenText, AnErrorOnAllRanksIsShownOnceWithTheRanks) {
  Shown shown({.ranks = 3});
  EXPECT_EQ(shown.Add(0, "before\n"), "[0]<stderr>:before\n");
  EXPECT_EQ(shown.Add(0, kError), "");
  EXPECT_EQ(shown.Add(2, kError), "");
  EXPECT_EQ(shown.Add(1, kError),
            "[0-2]<stderr>:Traceback (most recent call last):\n"
            "[0-2]<stderr>:  File \"train.py\", line 1, in <module>\n"
            "[0-2]<stderr>:ModuleNotFoundError: No module\n");
  EXPECT_EQ(shown.Add(1, "after\n"), "");
  EXPECT_EQ(shown.After(kFoldWait), "[1]<stderr>:after\n");
}

TEST(ScreenText, AnErrorOfOneRankWaitsAMoment) {
  Shown shown({.ranks = 3});
  EXPECT_EQ(shown.Add(1, kError), "");
  EXPECT_EQ(shown.Add(0, "in between\n"), "[0]<stderr>:in between\n");
  EXPECT_EQ(shown.Add(1, "and more\n"), "");
  EXPECT_TRUE(shown.After(kFoldWait).ends_with("No module\n[1]<stderr>:and more\n"));
  shown.After(milliseconds(1000));
  EXPECT_EQ(shown.Add(1, "at once\n"), "[1]<stderr>:at once\n");
}

TEST(ScreenText, NothingIsLostAtTheEnd) {
  Shown shown({.ranks = 2});
  shown.Add(0, kError);
  shown.Add(0, "unfinished");
  EXPECT_TRUE(shown.Finish().ends_with(
      "[0]<stderr>:ModuleNotFoundError: No module\n[0]<stderr>:unfinished\n"));
  Shown alone({.ranks = 1});
  EXPECT_NE(alone.Add(0, kError), "") << "it has nobody to wait for";
}

TEST(ScreenText, AFoldedPromptIsShownThoughItsLineHasNoEnd) {
  Shown shown({.ranks = 2, .fold = true}, OutputStream::kStdout);
  EXPECT_EQ(shown.Add(0, "(Pdb) "), "");
  shown.After(kFoldWait - milliseconds(1));
  EXPECT_EQ(shown.After(milliseconds(1)), "");
  EXPECT_EQ(shown.After(kFoldWait), "[0]<stdout>:(Pdb) ");
  EXPECT_EQ(shown.Add(0, "x\n"), "");
  EXPECT_EQ(shown.After(kFoldWait), "x\n");
}

ScreenTextOptions Bars(bool terminal) {
  ScreenTextOptions options{.ranks = 2, .updates_per_second = 5};
  options.style.terminal = terminal;
  return options;
}

TEST(ScreenText, OnATerminalThereIsOneBar) {
  Shown shown(Bars(true));
  EXPECT_EQ(shown.Add(0, "10%\r"), "[0]<stderr>:10%\r");
  EXPECT_EQ(shown.Add(1, "11%\r"), "");
  EXPECT_EQ(shown.Add(0, "20%\r"), "\x1b[K[0]<stderr>:20%\r");
  EXPECT_EQ(shown.Add(1, "21%\r"), "");
  EXPECT_EQ(shown.Add(0, "100%\n"), "\x1b[K[0]<stderr>:100%\n") << "the last update and its line";
  EXPECT_EQ(shown.Add(1, "31%\r"), "[1]<stderr>:31%\r") << "the bar is free";
  EXPECT_EQ(shown.Add(0, "1%\r"), "");
  EXPECT_EQ(shown.Finish(), "\x1b[K[0]<stderr>:1%\r\x1b[K");
}

TEST(ScreenText, ABarThatStandsStillIsReplaced) {
  Shown shown(Bars(true));
  shown.Add(0, "10%\r");
  EXPECT_EQ(shown.Add(1, "11%\r"), "");
  shown.After(std::chrono::seconds(2));
  EXPECT_EQ(shown.Add(1, "12%\r"), "\x1b[K[1]<stderr>:12%\r");
}

TEST(ScreenText, ElsewhereEveryBarIsShownInALineOfItsOwn) {
  Shown shown(Bars(false));
  EXPECT_EQ(shown.Add(0, "10%\r"), "[0]<stderr>:10%\r");
  EXPECT_EQ(shown.Add(1, "11%\r"), "\n[1]<stderr>:11%\r");
  EXPECT_EQ(shown.Add(1, "12%\r"), "[1]<stderr>:12%\r");
}

}  // namespace
}  // namespace hvd
