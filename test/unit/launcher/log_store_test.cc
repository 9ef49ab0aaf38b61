#include "launcher/detached/log_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>

#include "runtime/base/text/format.h"
#include "test/fakes/temporary_folder.h"

namespace hvd {
namespace {

constexpr uint64_t kUnlimited = uint64_t{1} << 40;
constexpr int64_t kLineNs = 1'000'000'000, kBegin = 1'700'000'000 * kLineNs;

class LogStoreTest : public TemporaryFolderTest {
 protected:
  std::unique_ptr<LogWriter> Writer(uint64_t limit) const {
    auto writer = LogWriter::Open(folder_, limit);
    EXPECT_TRUE(writer.ok()) << writer.status().message();
    return std::move(*writer);
  }
  static std::string Rest(LogReader& reader, size_t most = 4096) {
    std::string all;
    for (;;) {
      const std::string bytes = reader.Read(most);
      if (bytes.empty()) return all;
      all += bytes;
    }
  }
  size_t FilesKept() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_),
                                             std::filesystem::directory_iterator()));
  }
  uint64_t BytesKept() const {
    uint64_t bytes = 0;
    for (const LogSegment& segment : SegmentsIn(folder_)) {
      struct stat facts {};
      if (::stat(segment.path.c_str(), &facts) == 0) bytes += static_cast<uint64_t>(facts.st_size);
    }
    return bytes;
  }
};

std::string Line(int number) { return Format("line {}\n", number); }

std::string Lines(int from, int to) {
  std::string text;
  for (int number = from; number < to; ++number) text += Line(number);
  return text;
}

TEST_F(LogStoreTest, WhatIsWrittenIsRead) {
  const auto writer = Writer(kUnlimited);
  LogReader reader(folder_, {});
  EXPECT_EQ(Rest(reader), "");
  writer->Append("one\ntw", 0);
  EXPECT_EQ(Rest(reader), "one\ntw");
  writer->Append("o\n", 0);
  EXPECT_EQ(Rest(reader, 1), "o\n");
  EXPECT_EQ(reader.place(), (LogPlace{8, 2}));
  EXPECT_EQ(reader.PopLostLines(), 0u);
}

TEST_F(LogStoreTest, AReaderGoesOnWhereAnotherLeftOff) {
  const auto writer = Writer(1600);  // segments of 100 bytes
  LogPlace left;
  std::string all;
  for (int number = 0; number < 150; ++number) {
    writer->Append(Line(number), 0);
    if (number % 7 != 0) continue;
    LogReader reader(folder_, left);
    all += Rest(reader, 13);
    left = reader.place();
    EXPECT_EQ(reader.PopLostLines(), 0u);
  }
  LogReader reader(folder_, left);
  EXPECT_EQ(all + Rest(reader), Lines(0, 150));
}

TEST_F(LogStoreTest, ALiveReaderLosesNothingWhileSegmentsChange) {
  const auto writer = Writer(1600);
  LogReader reader(folder_, {});
  std::string all;
  for (int number = 0; number < 5000; ++number) {
    writer->Append(Line(number), 0);
    if (number % 11 == 0) all += Rest(reader);
  }
  EXPECT_EQ(all + Rest(reader), Lines(0, 5000));
  EXPECT_EQ(reader.PopLostLines(), 0u);
}

TEST_F(LogStoreTest, TheLimitHoldsAndMissingLinesAreCounted) {
  const auto writer = Writer(1600);
  for (int number = 0; number < 1000; ++number) {
    writer->Append(Line(number), 0);
    ASSERT_LE(BytesKept(), 1700u);
  }
  EXPECT_GT(BytesKept(), 1200u);
  LogReader reader(folder_, {});
  const std::string rest = Rest(reader);
  const auto lost = static_cast<int>(reader.PopLostLines());
  EXPECT_GT(lost, 0);
  EXPECT_EQ(rest, Lines(lost, 1000)) << "each line is either shown or counted";
}

TEST_F(LogStoreTest, OneLongLineIsKeptWithinTheLimit) {
  const auto writer = Writer(1600);
  for (int piece = 0; piece < 500; ++piece) writer->Append("0123456789", 0);
  EXPECT_LE(BytesKept(), 1900u);
  writer->Append("end\n", 0);
  LogReader reader(folder_, {});
  const std::string rest = Rest(reader);
  EXPECT_TRUE(rest.ends_with("89end\n"));
  EXPECT_EQ(reader.place(), (LogPlace{5004, 1}));
}

TEST_F(LogStoreTest, ANewWriterGoesOnWhereTheFormerWasKilled) {
  std::string all;
  for (int writers = 0; writers < 20; ++writers) {
    const auto writer = Writer(kUnlimited);
    const std::string piece = Format("by {}\nhalf", writers);
    writer->Append(piece, 0);
    all += piece;
  }
  LogReader reader(folder_, {});
  EXPECT_EQ(Rest(reader), all);
  EXPECT_EQ(reader.place(), (LogPlace{all.size(), 20}));
}

TEST_F(LogStoreTest, WhatCannotBeWrittenIsCounted) {
  {
    const auto writer = Writer(kUnlimited);
    writer->Append("kept\n", 0);
  }
  // A gap, as a full disk leaves it: the next segment begins 3 lines later.
  const std::string next = folder_ + Format("/output.{:020}.{:020}", 100, 4);
  ASSERT_EQ(::rename(SegmentsIn(folder_)[0].path.c_str(), next.c_str()), 0);
  LogReader reader(folder_, {5, 1});
  EXPECT_EQ(Rest(reader), "kept\n");
  EXPECT_EQ(reader.PopLostLines(), 3u);
  EXPECT_EQ(reader.place(), (LogPlace{105, 5}));
}

TEST_F(LogStoreTest, SinceATime) {
  const auto writer = Writer(3200);
  for (int number = 0; number < 100; ++number)
    writer->Append(Line(number), kBegin + number * kLineNs);
  const auto since = [&](int64_t ns) {
    LogReader reader(folder_, PlaceSince(folder_, kBegin + ns));
    return Rest(reader);
  };
  EXPECT_EQ(since(70 * kLineNs), Lines(70, 100));
  EXPECT_EQ(since(69 * kLineNs + 1), Lines(69, 100)) << "to a second";
  EXPECT_EQ(since(98 * kLineNs), Lines(98, 100));
  EXPECT_EQ(since(200 * kLineNs), "");
  EXPECT_EQ(since(0), Lines(0, 100));
}

TEST_F(LogStoreTest, SinceATimeAfterTheClockWasSetBack) {
  const auto writer = Writer(kUnlimited);
  writer->Append("ahead\n", kBegin + 3600 * kLineNs);
  for (int number = 0; number < 10; ++number)
    writer->Append(Line(number), kBegin + number * kLineNs);
  LogReader reader(folder_, PlaceSince(folder_, kBegin + 7 * kLineNs));
  EXPECT_EQ(Rest(reader), Lines(7, 10));
}

TEST_F(LogStoreTest, APartOfALineThatIsMissingIsCounted) {
  {
    const auto writer = Writer(kUnlimited);
    writer->Append("half of a l", 0);
  }
  std::ofstream(folder_ + Format("/output.{:020}.{:020}", 13, 0)) << "ne\n";
  LogReader reader(folder_, {});
  EXPECT_EQ(reader.Read(4096), "half of a l");
  EXPECT_EQ(reader.Read(4096), "ne\n");
  EXPECT_EQ(reader.PopLostLines(), 1u);
}

TEST_F(LogStoreTest, ANewWriterNeedsNoNewFile) {
  Writer(kUnlimited)->Append("one\n", 0);
  const size_t files = FilesKept();
  const auto writer = Writer(kUnlimited);
  writer->Append("two\n", 0);
  EXPECT_EQ(FilesKept(), files);
  LogReader reader(folder_, {});
  EXPECT_EQ(Rest(reader), "one\ntwo\n");
  EXPECT_EQ(EndOfLog(folder_), 8u);
}

TEST_F(LogStoreTest, SegmentsKeepTheLimitOfFileSizes) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{4000, before.rlim_max};
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  {
    const auto writer = Writer(kUnlimited);
    for (int number = 0; number < 3000; ++number) writer->Append(Line(number), 0);
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  LogReader reader(folder_, {});
  EXPECT_EQ(Rest(reader), Lines(0, 3000));
  EXPECT_EQ(reader.PopLostLines(), 0u);
}

TEST_F(LogStoreTest, FilesAreForTheirOwnerOnly) {
  const mode_t former = ::umask(0);
  const auto writer = Writer(kUnlimited);
  writer->Append("secret\n", 1);
  ::umask(former);
  struct stat facts {};
  ASSERT_EQ(::stat(SegmentsIn(folder_)[0].path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
}

TEST_F(LogStoreTest, RandomPiecesAreShownOrCountedOnce) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  auto writer = Writer(2000);
  std::string all;
  LogReader slow(folder_, {});
  for (int round = 0; round < 2000; ++round) {
    std::string piece;
    const size_t length = random() % 120;
    for (size_t at = 0; at < length; ++at) piece += random() % 10 == 0 ? '\n' : 'x';
    writer->Append(piece, 0);
    all += piece;
    if (random() % 100 == 0) writer = Writer(2000);
    if (random() % 40 != 0) continue;
    for (;;) {
      const LogPlace before = slow.place();
      const std::string piece_shown = slow.Read(97);
      const LogPlace after = slow.place();
      const uint64_t begin = after.offset - piece_shown.size();
      ASSERT_EQ(piece_shown, all.substr(begin, piece_shown.size()));
      const std::string missed = all.substr(before.offset, begin - before.offset);
      ASSERT_EQ(slow.PopLostLines(),
                static_cast<uint64_t>(std::count(missed.begin(), missed.end(), '\n')));
      if (piece_shown.empty()) break;
    }
    ASSERT_EQ(slow.place().offset, all.size());
  }
}

TEST(LostLines, OneSentence) {
  EXPECT_EQ(LostLinesText(1),
            "hvdrun: 1 line of older output was not kept (--detached-output-limit)");
  EXPECT_EQ(LostLinesText(7),
            "hvdrun: 7 lines of older output were not kept (--detached-output-limit)");
}

}  // namespace
}  // namespace hvd
