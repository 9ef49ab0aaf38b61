#include "launcher/lines.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

TEST(LastLines, KeepsAWholeTracebackWithWhatLedToIt) {
  std::string traceback = "Traceback (most recent call last):\n";
  for (int i = 0; i < 40; ++i) traceback += "  File \"a.py\", line " + std::to_string(i) + "\n";
  traceback +=
      "KeyError: 1\n\nDuring handling of the above exception, another exception occurred:\n\n"
      "Traceback (most recent call last):\n  File \"b.py\"\nValueError: 2";
  LastLines lines;
  lines.Add("Traceback (most recent call last):\n  an earlier one\nOSError\nnoise\n" + traceback +
            "\n");
  EXPECT_EQ(lines.Text(), traceback);
}

TEST(LastLines, BoundsATraceback) {
  LastLines lines;
  lines.Add("Traceback (most recent call last):\n");
  for (int i = 0; i < 10; ++i) lines.Add(std::string(9'000, 'x') + "\n");
  EXPECT_LE(lines.Text().size(), LastLines::kMaxTracebackBytes);
}

TEST(LineBuffer, GivesWholeLinesAndHoldsTheRest) {
  LineBuffer lines;
  EXPECT_EQ(lines.Add("ab"), "");
  EXPECT_EQ(lines.Add("c\nd\ne"), "abc\nd\n");
  EXPECT_EQ(lines.Add("10%\r20"), "e10%\r");
  EXPECT_EQ(lines.Flush(), "20");
  EXPECT_EQ(lines.Flush(), "");
}

TEST(LineBuffer, NeverHoldsMoreThanItsBound) {
  LineBuffer lines;
  std::string out;
  size_t in = 0;
  for (int i = 0; i < 1000; ++i) {
    out += lines.Add(std::string(100, 'x'));
    in += 100;
    EXPECT_LT(in - out.size(), LineBuffer::kMaxHeld);
  }
}

TEST(LastLines, KeepsTheLastTwenty) {
  LastLines last;
  for (int i = 1; i <= 1000; ++i) last.Add("line " + std::to_string(i) + "\n");
  std::string text = last.Text();
  EXPECT_TRUE(text.starts_with("line 981\n")) << text;
  EXPECT_TRUE(text.ends_with("line 1000")) << text;
}

TEST(LastLines, IsBoundedInBytes) {
  LastLines last;
  for (int i = 0; i < 100; ++i) last.Add(std::string(100'000, 'x'));
  EXPECT_LE(last.Text().size(), LastLines::kMaxBytes);
  EXPECT_EQ(LastLines().Text(), "");
}

TEST(LinePrefixer, EveryLineOfEveryPieceHasItsRank) {
  LinePrefixer out(OutputStream::kStdout);
  EXPECT_EQ(out.Add(0, "a\nb\n"), "[0]<stdout>:a\n[0]<stdout>:b\n");
  LinePrefixer err(OutputStream::kStderr);
  EXPECT_EQ(err.Add(12, "\n"), "[12]<stderr>:\n");
  EXPECT_EQ(err.Add(1, ""), "");
}

TEST(LinePrefixer, AnUnfinishedLineGoesOnWithoutAPrefix) {
  LinePrefixer out(OutputStream::kStdout);
  EXPECT_EQ(out.Add(0, "abc"), "[0]<stdout>:abc");
  EXPECT_EQ(out.Add(0, "def\n"), "def\n");
  EXPECT_EQ(out.Close(), "");
}

TEST(LinePrefixer, TwoRanksNeverShareALine) {
  LinePrefixer out(OutputStream::kStdout);
  EXPECT_EQ(out.Add(0, "abc"), "[0]<stdout>:abc");
  EXPECT_EQ(out.Add(1, "x\n"), "\n[1]<stdout>:x\n");
  EXPECT_EQ(out.Add(0, "def\n"), "[0]<stdout>:def\n");
}

TEST(LinePrefixer, AnOpenLineIsEndedAtTheEnd) {
  LinePrefixer out(OutputStream::kStdout);
  out.Add(0, "abc");
  EXPECT_EQ(out.Close(), "\n");
  EXPECT_EQ(out.Close(), "");
}

TEST(LinePrefixer, CarriageReturnsEndPiecesAndPairsStayTogether) {
  LinePrefixer out(OutputStream::kStdout);
  EXPECT_EQ(out.Add(0, "1%\r2%\rend\r\nnext\n"),
            "[0]<stdout>:1%\r[0]<stdout>:2%\r[0]<stdout>:end\r\n[0]<stdout>:next\n");
  EXPECT_EQ(out.Add(0, "split\r"), "[0]<stdout>:split\r");
  EXPECT_EQ(out.Add(0, "\nmore\n"), "\n[0]<stdout>:more\n");
  EXPECT_EQ(out.Add(0, "a\r"), "[0]<stdout>:a\r");
  EXPECT_EQ(out.Add(1, "\n"), "[1]<stdout>:\n");
  EXPECT_EQ(out.Add(0, "\n"), "[0]<stdout>:\n");
}

}  // namespace
}  // namespace hvd
