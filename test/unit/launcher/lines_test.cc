#include "launcher/output/lines.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

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

std::string Add(LineBuffer& lines, std::string_view bytes) {
  LineBuffer::Ready ready = lines.Add(bytes);
  return ready.held + std::string(ready.bytes);
}

TEST(LineBuffer, GivesWholeLinesAndHoldsTheRest) {
  LineBuffer lines;
  EXPECT_EQ(Add(lines, "ab"), "");
  EXPECT_EQ(Add(lines, "c\nd\ne"), "abc\nd\n");
  EXPECT_EQ(Add(lines, "10%\r20"), "e10%\r");
  EXPECT_EQ(lines.Flush(), "20");
  EXPECT_EQ(lines.Flush(), "");
}

TEST(LineBuffer, NeverHoldsMoreThanItsBound) {
  LineBuffer lines;
  std::string out;
  size_t in = 0;
  for (int i = 0; i < 1000; ++i) {
    out += Add(lines, std::string(100, 'x'));
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

// A LinePrefixer whose calls return what they show.
class Prefixed {
 public:
  explicit Prefixed(OutputStream stream, PrefixStyle style = {})
      : prefixer_(stream, std::move(style), line_) {}
  std::string Add(uint32_t rank, std::string_view bytes) {
    prefixer_.Add(rank, bytes);
    return std::exchange(line_.text, {});
  }
  std::string AddFolded(const std::vector<uint32_t>& ranks, std::string_view bytes) {
    prefixer_.AddFolded(ranks, bytes);
    return std::exchange(line_.text, {});
  }
  std::string Close() {
    prefixer_.Close();
    return std::exchange(line_.text, {});
  }
  void LineTyped() { prefixer_.LineTyped(); }

 private:
  ScreenLine line_;
  LinePrefixer prefixer_;
};

TEST(LineLength, OfTheFirstLineWithItsEnd) {
  EXPECT_EQ(LineLength("ab\ncd\n", false), 3U);
  EXPECT_EQ(LineLength("ab", true), 0U);
  EXPECT_EQ(LineLength("a\rb\n", true), 2U);
  EXPECT_EQ(LineLength("a\r\nb", true), 3U);
  EXPECT_EQ(LineLength("a\r", true), 2U);
  EXPECT_EQ(LineLength("\n", false), 1U);
}

TEST(LinePrefixer, EveryLineOfEveryPieceHasItsRank) {
  Prefixed out(OutputStream::kStdout);
  EXPECT_EQ(out.Add(0, "a\nb\n"), "[0]<stdout>:a\n[0]<stdout>:b\n");
  Prefixed err(OutputStream::kStderr);
  EXPECT_EQ(err.Add(12, "\n"), "[12]<stderr>:\n");
  EXPECT_EQ(err.Add(1, ""), "");
}

TEST(LinePrefixer, AnUnfinishedLineGoesOnWithoutAPrefix) {
  Prefixed out(OutputStream::kStdout);
  EXPECT_EQ(out.Add(0, "abc"), "[0]<stdout>:abc");
  EXPECT_EQ(out.Add(0, "def\n"), "def\n");
  EXPECT_EQ(out.Close(), "");
}

TEST(LinePrefixer, TwoRanksNeverShareALine) {
  Prefixed out(OutputStream::kStdout);
  EXPECT_EQ(out.Add(0, "abc"), "[0]<stdout>:abc");
  EXPECT_EQ(out.Add(1, "x\n"), "\n[1]<stdout>:x\n");
  EXPECT_EQ(out.Add(0, "def\n"), "[0]<stdout>:def\n");
}

TEST(LinePrefixer, AnOpenLineIsEndedAtTheEnd) {
  Prefixed out(OutputStream::kStdout);
  out.Add(0, "abc");
  EXPECT_EQ(out.Close(), "\n");
  EXPECT_EQ(out.Close(), "");
}

TEST(LinePrefixer, CarriageReturnsEndPiecesAndPairsStayTogether) {
  Prefixed out(OutputStream::kStdout);
  EXPECT_EQ(out.Add(0, "1%\r2%\rend\r\nnext\n"),
            "[0]<stdout>:1%\r[0]<stdout>:2%\r[0]<stdout>:end\r\n[0]<stdout>:next\n");
  EXPECT_EQ(out.Add(0, "split\r"), "[0]<stdout>:split\r");
  EXPECT_EQ(out.Add(0, "\nmore\n"), "\n[0]<stdout>:more\n");
  EXPECT_EQ(out.Add(0, "a\r"), "[0]<stdout>:a\r");
  EXPECT_EQ(out.Add(1, "\n"), "\n[1]<stdout>:\n")
      << "nor do two ranks share a line that was returned";
  EXPECT_EQ(out.Add(0, "\n"), "[0]<stdout>:\n");
}

PrefixStyle Terminal(size_t columns) {
  PrefixStyle style;
  style.terminal = true;
  style.columns = [columns] { return columns; };
  return style;
}

TEST(LinePrefixer, OnATerminalABarLeavesNoRemains) {
  Prefixed out(OutputStream::kStdout, Terminal(0));
  EXPECT_EQ(out.Add(0, "a long bar\r"), "[0]<stdout>:a long bar\r");
  EXPECT_EQ(out.Add(0, "short\r"), "\x1b[K[0]<stdout>:short\r");
  EXPECT_EQ(out.Add(1, "x\n"), "\x1b[K[1]<stdout>:x\n");
  EXPECT_EQ(out.Add(0, "bar\r"), "[0]<stdout>:bar\r");
  EXPECT_EQ(out.Add(0, "\n"), "\n");
  out.Add(0, "bar\r");
  EXPECT_EQ(out.Close(), "\x1b[K");
  EXPECT_EQ(out.Close(), "");
}

TEST(LinePrefixer, OnATerminalABarHasOneLine) {
  Prefixed out(OutputStream::kStdout, Terminal(20));
  EXPECT_EQ(out.Add(0, "0123456789\r"), "[0]<stdout>:0123456\r");
  EXPECT_EQ(
      out.Add(0, "012\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88\x1b[31m\xe2\x96\x88\r"),
      "\x1b[K[0]<stdout>:012\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88\x1b[31m\x1b[0m\r");
  EXPECT_EQ(out.Add(0, "0123456789"), "\x1b[K[0]<stdout>:0123456")
      << "a bar that begins with its return";
  EXPECT_EQ(out.Add(0, "\r"), "\r");
  EXPECT_EQ(out.Add(0, "0123456789\n"), "\x1b[K[0]<stdout>:0123456789\n") << "lines are never cut";
  Prefixed tiny(OutputStream::kStdout, Terminal(5));
  EXPECT_EQ(tiny.Add(0, "0123456789\r"), "[0]<stdout>:0123456789\r");
}

TEST(LinePrefixer, TwoStreamsThatLeadToOnePlaceNeverShareALine) {
  ScreenLine line;
  LinePrefixer out(OutputStream::kStdout, {}, line), err(OutputStream::kStderr, {}, line);
  out.Add(0, "abc");
  err.Add(0, "x\n");
  out.Add(0, "def\n");
  err.Add(0, "10%\r");
  out.Add(0, "y\n");
  EXPECT_EQ(line.text,
            "[0]<stdout>:abc\n[0]<stderr>:x\n[0]<stdout>:def\n[0]<stderr>:10%\r\n[0]<stdout>:y\n");
}

TEST(LinePrefixer, AnAnswerEndsTheLineOfItsPrompt) {
  Prefixed out(OutputStream::kStdout);
  EXPECT_EQ(out.Add(0, "(Pdb) "), "[0]<stdout>:(Pdb) ");
  out.LineTyped();
  EXPECT_EQ(out.Add(0, "5\n(Pdb) "), "[0]<stdout>:5\n[0]<stdout>:(Pdb) ");
}

PrefixStyle StyleWith(std::string_view prefix) {
  PrefixStyle style;
  style.prefix = *PrefixTemplate::Parse(prefix);
  style.wall_seconds = [] { return int64_t{0}; };
  style.places = {{"a", 0}, {"a", 1}, {"b", 0}};
  return style;
}

TEST(LinePrefixer, AFoldedLineHasARange) {
  Prefixed out(OutputStream::kStdout);
  EXPECT_EQ(out.AddFolded({0, 1, 2}, "x\n"), "[0-2]<stdout>:x\n");
  EXPECT_EQ(out.AddFolded({0, 2}, "y\n"), "[0,2]<stdout>:y\n");
  EXPECT_EQ(out.AddFolded({1}, "z\n"), "[1]<stdout>:z\n");
}

TEST(LinePrefixer, TheTemplateSaysWhatIsInFront) {
  Prefixed out(OutputStream::kStderr, StyleWith("{host}.{local_rank} ({rank}) {stream}{{}}|"));
  EXPECT_EQ(out.Add(2, "x\ny\n"), "b.0 (2) stderr{}|x\nb.0 (2) stderr{}|y\n");
  EXPECT_EQ(out.AddFolded({0, 1}, "x\n"), "a.* (0-1) stderr{}|x\n");
  EXPECT_EQ(out.AddFolded({0, 2}, "x\n"), "*.0 (0,2) stderr{}|x\n");
}

TEST(LinePrefixer, TimesAreThoseOfTheLine) {
  int64_t now = 86'400;
  PrefixStyle style = StyleWith("{time} ");
  style.wall_seconds = [&] { return now; };
  Prefixed out(OutputStream::kStdout, style);
  EXPECT_EQ(out.Add(0, "x\n"), TimeStampText(now) + " x\n");
  now += 5;
  EXPECT_EQ(out.Add(0, "x\n"), TimeStampText(now) + " x\n");
  style.stamp = true;  // once is enough
  Prefixed once(OutputStream::kStdout, style);
  EXPECT_EQ(once.Add(0, "x\n"), TimeStampText(now) + " x\n");
  style.prefix = PrefixTemplate::Default();
  Prefixed in_front(OutputStream::kStdout, style);
  EXPECT_EQ(in_front.Add(0, "x\n"), TimeStampText(now) + "[0]<stdout>:x\n");
}

TEST(PrefixTemplate, SaysWhatIsWrong) {
  auto message = [](std::string_view text) {
    return PrefixTemplate::Parse(text).status().message();
  };
  EXPECT_EQ(message("{rnk}"),
            "--prefix '{rnk}': 'rnk' is no field; there are {rank}, {local_rank}, {host}, {stream} "
            "and {time}");
  EXPECT_NE(message("{rank").find("'{' without its partner"), std::string::npos);
  EXPECT_NE(message("rank}").find("'}' without its partner"), std::string::npos);
  EXPECT_NE(message("\x1b[31m").find("'\\x1b[31m': a prefix holds no control"), std::string::npos);
  EXPECT_TRUE(PrefixTemplate::Parse("").ok());
}

TEST(ShownErrors, KnowWhatARankWroteLast) {
  ShownErrors shown;
  EXPECT_FALSE(shown.EndWith(""));
  shown.Add(1, OutputStream::kStderr, "begun\nTraceback");
  shown.Add(0, OutputStream::kStderr, "other\n");
  shown.Add(1, OutputStream::kStderr, "\nboom\n");
  EXPECT_TRUE(shown.EndWith("Traceback\nboom"));
  EXPECT_TRUE(shown.EndWith("other"));
  EXPECT_FALSE(shown.EndWith("begun"));
  EXPECT_FALSE(shown.EndWith(""));
  EXPECT_FALSE(shown.EndWith("longer\nother"));
}

TEST(ShownErrors, ScrollAway) {
  ShownErrors shown;
  shown.Add(0, OutputStream::kStderr, "boom\n");
  for (size_t n = 0; n < ShownErrors::kMaxLinesAfter; ++n)
    shown.Add(1, OutputStream::kStdout, "x\n");
  EXPECT_TRUE(shown.EndWith("boom"));
  shown.Add(1, OutputStream::kStdout, "x\n");
  EXPECT_FALSE(shown.EndWith("boom"));
}

TEST(ShownErrors, AreOfTheRanksThatWroteLast) {
  ShownErrors shown;
  for (uint32_t rank = 0; rank < ShownErrors::kMaxRanks; ++rank)
    shown.Add(rank, OutputStream::kStderr, rank == 0 ? "first" : rank == 1 ? "second" : "later");
  shown.Add(0, OutputStream::kStderr, "");
  shown.Add(ShownErrors::kMaxRanks, OutputStream::kStderr, "last");
  EXPECT_TRUE(shown.EndWith("first"));
  EXPECT_FALSE(shown.EndWith("second"));
  EXPECT_TRUE(shown.EndWith("last"));
}

}  // namespace
}  // namespace hvd
