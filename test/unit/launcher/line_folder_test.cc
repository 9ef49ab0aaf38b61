#include "launcher/output/line_folder.h"

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <utility>

#include "launcher/output/text/phrases.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;

// A LineFolder whose calls return what they showed: "[0-1]a\n[2]b\n".
class Shown {
 public:
  explicit Shown(uint32_t size, std::vector<std::string>* by_rank = nullptr)
      : folder_(size, [this, by_rank](std::span<const uint32_t> ranks, std::string_view line) {
          text_ += "[" + RankRanges(ranks) + "]" + std::string(line);
          if (by_rank == nullptr) return;
          for (uint32_t rank : ranks) (*by_rank)[rank] += line;
        }) {}

  std::string Add(uint32_t rank, std::string_view bytes, TimePoint now) {
    folder_.Add(rank, bytes, now);
    return Take();
  }
  std::string Due(TimePoint now) {
    folder_.Due(now);
    return Take();
  }
  std::string Flush() {
    folder_.Flush();
    return Take();
  }
  std::optional<TimePoint> deadline() const { return folder_.deadline(); }

 private:
  std::string Take() { return std::exchange(text_, {}); }

  std::string text_;
  LineFolder folder_;
};

constexpr TimePoint kStart{};

TEST(RankRanges, AreShort) {
  auto ranges = [](std::vector<uint32_t> ranks) { return RankRanges(ranks); };
  EXPECT_EQ(ranges({0, 1, 2, 3}), "0-3");
  EXPECT_EQ(ranges({0, 2, 3, 7}), "0,2-3,7");
  EXPECT_EQ(ranges({5}), "5");
}

TEST(LineFolder, ALineOfAllRanksIsShownOnceAndAtOnce) {
  Shown folder(3);
  EXPECT_EQ(folder.Add(1, "a\n", kStart), "");
  EXPECT_EQ(folder.Add(0, "a\n", kStart), "");
  EXPECT_EQ(folder.Add(2, "a\n", kStart), "[0-2]a\n");
  EXPECT_FALSE(folder.deadline());
}

TEST(LineFolder, ALineWaitsForABoundedTime) {
  Shown folder(4);
  folder.Add(0, "a\n", kStart);
  folder.Add(3, "a\n", kStart + milliseconds(20));
  folder.Add(2, "a\n", kStart + milliseconds(20));
  ASSERT_EQ(folder.deadline(), kStart + kFoldWait);
  EXPECT_LE(kFoldWait, milliseconds(200));
  EXPECT_EQ(folder.Due(kStart + kFoldWait - milliseconds(1)), "");
  EXPECT_EQ(folder.Due(kStart + kFoldWait), "[0,2-3]a\n");
  folder.Add(1, "a\n", kStart + milliseconds(500));
  EXPECT_EQ(folder.Flush(), "[1]a\n");
}

TEST(LineFolder, ARepeatedLineIsShownAsOftenAsItWasWritten) {
  Shown folder(2);
  std::string text = folder.Add(0, "a\na\nb\n", kStart);
  text += folder.Add(1, "a\na\nb\n", kStart);
  EXPECT_EQ(text, "[0-1]a\n[0-1]a\n[0-1]b\n");
}

TEST(LineFolder, OtherOrdersStayOrders) {
  Shown folder(2);
  folder.Add(0, "a\nb\n", kStart);
  folder.Add(1, "b\na\n", kStart);
  EXPECT_EQ(folder.Flush(), "[0]a\n[0-1]b\n[1]a\n");
}

TEST(LineFolder, PiecesBecomeLinesAndTheLastNeedsNoNewline) {
  Shown folder(2);
  folder.Add(0, "on", kStart);
  folder.Add(0, "e\ntw", kStart);
  folder.Add(1, "one\ntwo", kStart);
  folder.Add(0, "o", kStart);
  EXPECT_EQ(folder.Flush(), "[0-1]two");
}

TEST(LineFolder, CarriageReturnsEndLines) {
  Shown folder(1);
  EXPECT_EQ(folder.Add(0, "1%\r2%\rx\r\n", kStart), "[0]1%\r[0]2%\r[0]x\r\n");
}

TEST(LineFolder, HoldsABoundedAmount) {
  Shown folder(2);
  size_t in = 0, out = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string line = i % 2 == 0 ? "x\n" : std::string(1500, 'a' + static_cast<char>(i % 26));
    in += line.size();
    out += folder.Add(0, line, kStart).size();
    EXPECT_LT(in, out + 1'200'000);
  }
}

TEST(LineFolder, AFewTextsThatComeOverAndOverFoldWithThoseFarBehind) {
  Shown folder(3);
  std::string wrote, out, expected;
  for (int i = 0; i < 5000; ++i) wrote += i % 3 == 0 ? "a\n" : i % 3 == 1 ? "b\n" : "longer\n";
  for (uint32_t rank = 0; rank < 3; ++rank) out += folder.Add(rank, wrote, kStart);
  for (size_t at = 0; at < wrote.size();) {
    size_t end = wrote.find('\n', at) + 1;
    expected += "[0-2]" + wrote.substr(at, end - at);
    at = end;
  }
  EXPECT_EQ(out, expected);
}

TEST(LineFolder, MoreThan64Ranks) {
  Shown folder(130);
  std::string out;
  for (uint32_t rank = 0; rank < 130; ++rank) out += folder.Add(rank, "x\ny\n", kStart);
  EXPECT_EQ(out, "[0-129]x\n[0-129]y\n");
  folder.Add(64, "z\n", kStart);
  folder.Add(129, "z\n", kStart);
  EXPECT_EQ(folder.Due(kStart + kFoldWait), "[64,129]z\n");
}

TEST(LineFolder, ALongRunOfDistinctLinesComesOutAsItWas) {
  std::vector<std::string> wrote(2), shown(2);
  Shown folder(2, &shown);
  for (int i = 0; i < 200'000; ++i) {
    uint32_t rank = i % 3 == 0;
    std::string line = std::to_string(i * (rank + 1)) + "\n";
    wrote[rank] += line;
    folder.Add(rank, line, kStart);
  }
  folder.Flush();
  EXPECT_EQ(shown, wrote);
}

TEST(LineFolder, NothingIsLostDoubledOrReordered) {
  std::mt19937 random(20240611);
  for (int round = 0; round < 200; ++round) {
    uint32_t size = 1 + random() % 5;
    std::vector<std::string> wrote(size), shown(size);
    Shown folder(size, &shown);
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
      folder.Add(rank, bytes, now);
      folder.Due(now);
    }
    folder.Flush();
    EXPECT_EQ(shown, wrote) << "round " << round;
  }
}

}  // namespace
}  // namespace hvd
