#include "launcher/fold.h"

#include <gtest/gtest.h>

#include <random>

namespace hvd {
namespace {

using std::chrono::milliseconds;

std::string Text(const std::vector<FoldedLine>& lines) {
  std::string text;
  for (const FoldedLine& line : lines) text += "[" + line.label + "]" + line.bytes;
  return text;
}

constexpr TimePoint kStart{};

TEST(RankRanges, AreShort) {
  EXPECT_EQ(RankRanges({0, 1, 2, 3}), "0-3");
  EXPECT_EQ(RankRanges({0, 2, 3, 7}), "0,2-3,7");
  EXPECT_EQ(RankRanges({5}), "5");
}

TEST(Folder, ALineOfAllRanksIsShownOnceAndAtOnce) {
  Folder folder(3);
  EXPECT_EQ(Text(folder.Add(1, "a\n", kStart)), "");
  EXPECT_EQ(Text(folder.Add(0, "a\n", kStart)), "");
  EXPECT_EQ(Text(folder.Add(2, "a\n", kStart)), "[0-2]a\n");
  EXPECT_FALSE(folder.deadline());
}

TEST(Folder, ALineWaitsForABoundedTime) {
  Folder folder(4);
  folder.Add(0, "a\n", kStart);
  folder.Add(3, "a\n", kStart + milliseconds(20));
  folder.Add(2, "a\n", kStart + milliseconds(20));
  ASSERT_EQ(folder.deadline(), kStart + kFoldWait);
  EXPECT_LE(kFoldWait, milliseconds(200));
  EXPECT_EQ(Text(folder.Due(kStart + kFoldWait - milliseconds(1))), "");
  EXPECT_EQ(Text(folder.Due(kStart + kFoldWait)), "[0,2-3]a\n");
  folder.Add(1, "a\n", kStart + milliseconds(500));
  EXPECT_EQ(Text(folder.Flush()), "[1]a\n");
}

TEST(Folder, ARepeatedLineIsShownAsOftenAsItWasWritten) {
  Folder folder(2);
  std::string text = Text(folder.Add(0, "a\na\nb\n", kStart));
  text += Text(folder.Add(1, "a\na\nb\n", kStart));
  EXPECT_EQ(text, "[0-1]a\n[0-1]a\n[0-1]b\n");
}

TEST(Folder, OtherOrdersStayOrders) {
  Folder folder(2);
  folder.Add(0, "a\nb\n", kStart);
  folder.Add(1, "b\na\n", kStart);
  EXPECT_EQ(Text(folder.Flush()), "[0]a\n[0-1]b\n[1]a\n");
}

TEST(Folder, PiecesBecomeLinesAndTheLastNeedsNoNewline) {
  Folder folder(2);
  folder.Add(0, "on", kStart);
  folder.Add(0, "e\ntw", kStart);
  folder.Add(1, "one\ntwo", kStart);
  folder.Add(0, "o", kStart);
  EXPECT_EQ(Text(folder.Flush()), "[0-1]two");
}

TEST(Folder, CarriageReturnsEndLines) {
  Folder folder(1);
  EXPECT_EQ(Text(folder.Add(0, "1%\r2%\rx\r\n", kStart)), "[0]1%\r[0]2%\r[0]x\r\n");
}

TEST(Folder, HoldsABoundedAmount) {
  Folder folder(2);
  size_t in = 0, out = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string line = i % 2 == 0 ? "x\n" : std::string(1500, 'a' + static_cast<char>(i % 26));
    in += line.size();
    out += Text(folder.Add(0, line, kStart)).size();
    EXPECT_LT(in, out + 1'200'000);
  }
}

TEST(Folder, NothingIsLostDoubledOrReordered) {
  std::mt19937 random(20240611);
  for (int round = 0; round < 200; ++round) {
    uint32_t size = 1 + random() % 5;
    Folder folder(size);
    std::vector<std::string> wrote(size), shown(size);
    auto take = [&](const std::vector<FoldedLine>& lines) {
      for (const FoldedLine& line : lines) {
        for (uint32_t rank = 0; rank < size; ++rank) {
          std::string label = "," + line.label + ",";
          bool in = false;
          for (uint32_t a = 0; a <= rank && !in; ++a) {
            for (uint32_t b = rank; b < size && !in; ++b) {
              std::string range =
                  a == b ? std::to_string(a) : std::to_string(a) + "-" + std::to_string(b);
              in = label.find("," + range + ",") != std::string::npos;
            }
          }
          if (in) shown[rank] += line.bytes;
        }
      }
    };
    TimePoint now = kStart;
    for (int step = 0; step < 100; ++step) {
      uint32_t rank = random() % size;
      std::string bytes;
      for (uint32_t n = random() % 4; n > 0; --n) {
        bytes += static_cast<char>('a' + random() % 3);
        if (random() % 3 != 0) bytes += '\n';
      }
      wrote[rank] += bytes;
      now += milliseconds(random() % 60);
      take(folder.Add(rank, bytes, now));
      take(folder.Due(now));
    }
    take(folder.Flush());
    EXPECT_EQ(shown, wrote) << "round " << round;
  }
}

}  // namespace
}  // namespace hvd
