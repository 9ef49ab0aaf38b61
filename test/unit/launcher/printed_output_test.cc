// How far output has been printed, as the driver that takes over finds it; and the packets in
// which it is printed.
#include "launcher/output/printed_output.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <random>
#include <string>
#include <vector>

#include "launcher/agent/driver_connection.h"
#include "launcher/output/screen_text.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

const std::string kOutputMark =
    "\x1e"
    "mark";
constexpr auto kPrintedOut = OutputStream::kStdout;

struct PacketPipe {
  PacketPipe() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe(ends), 0);
    reading.Reset(ends[0]);
    writing.Reset(ends[1]);
  }
  std::string ReadAll() {
    writing.Reset();
    std::string text;
    char bytes[4096];
    for (ssize_t got; (got = ::read(reading.get(), bytes, sizeof bytes)) > 0;)
      text.append(bytes, static_cast<size_t>(got));
    return text;
  }
  UniqueFd reading, writing;
};

std::shared_ptr<PrintedOutput> MakePrinted(uint32_t ranks = 2) {
  return *PrintedOutput::Make(ranks, kOutputMark);
}

TEST(PacketReader, TakesPacketsOutHoweverTheyAreCut) {
  const std::string stream = "raw " + PacketOf(kOutputMark, 1, "one\n") +
                             PacketOf(kOutputMark, 2, "") + "\x1em" +
                             PacketOf(kOutputMark, 3, "two\n") + "end";
  for (size_t cut = 1; cut <= stream.size(); ++cut) {
    PacketReader reader(kOutputMark);
    std::string text;
    for (size_t at = 0; at < stream.size(); at += cut)
      text += reader.Unwrap(stream.substr(at, cut));
    EXPECT_EQ(text, "raw one\n\x1emtwo\nend") << cut;
  }
}

TEST(PacketReader, DropsAPacketThatItHasHad) {
  PacketReader reader(kOutputMark);
  EXPECT_EQ(reader.Unwrap(PacketOf(kOutputMark, 7, "once\n")), "once\n");
  EXPECT_EQ(reader.Unwrap(PacketOf(kOutputMark, 7, "once\n") + PacketOf(kOutputMark, 8, "next\n")),
            "next\n");
}

TEST(PacketReader, WithoutAMarkAllPasses) {
  PacketReader reader("");
  EXPECT_EQ(reader.Unwrap("anything"), "anything");
}

TEST(PrintedOutput, CountsTheBytesOfTheWorkerThatIsTheRank) {
  const auto printed = *PrintedOutput::Make(1, kOutputMark, 8);
  PacketPipe pipe;
  EXPECT_TRUE(printed->Write(pipe.writing.get(), "abc\nde\nf",
                             {{0, 4, 0, kPrintedOut, 0, 0}, {4, 8, 0, kPrintedOut, 0, 7}}));
  EXPECT_EQ(printed->printed(0, kPrintedOut), 4U);
  EXPECT_EQ(printed->printed(7, kPrintedOut), 4U);
  EXPECT_EQ(printed->open_line().rank, 0U);
  EXPECT_EQ(printed->open_line().worker, 7U);
  EXPECT_TRUE(printed->Write(pipe.writing.get(), "x", {{0, 1, 0, kPrintedOut, 0, 8}}))
      << "one that is not counted";
}

TEST(PrintedOutput, KnowsTheLastWriterOfAFile) {
  const auto printed = *PrintedOutput::Make(2, kOutputMark, 8);
  EXPECT_EQ(printed->file_writer(1, kPrintedOut).worker, 1U) << "the rank itself, at first";
  for (uint32_t worker : {5, 6, 7}) {
    printed->SetFileWriter(1, kPrintedOut, {worker, 10 * worker, worker});
    EXPECT_EQ(printed->file_writer(1, kPrintedOut).worker, worker);
    EXPECT_EQ(printed->file_writer(1, kPrintedOut).at, 10 * worker);
    EXPECT_EQ(printed->file_writer(1, kPrintedOut).offset, worker);
  }
  EXPECT_EQ(printed->file_writer(0, kPrintedOut).worker, 0U);
  printed->SetInFile(7, kPrintedOut, 99);
  EXPECT_EQ(printed->in_file(7, kPrintedOut), 99U);
  EXPECT_EQ(printed->in_file(7, OutputStream::kStderr), 0U);
  EXPECT_EQ(printed->printed(7, kPrintedOut), 0U);
}

TEST(PrintedOutput, CountsTheBytesOfRanksAndNotThoseOfHvdrun) {
  const auto printed = MakePrinted();
  PacketPipe pipe;
  EXPECT_TRUE(printed->Write(pipe.writing.get(), "[0]abc\nhvdrun: x\n[1]de",
                             {{3, 7, 0, kPrintedOut}, {20, 22, 1, kPrintedOut, 5}}));
  EXPECT_EQ(printed->printed(0, kPrintedOut), 4U);
  EXPECT_EQ(printed->printed(1, kPrintedOut), 7U) << "five more were left out behind them";
  EXPECT_EQ(printed->printed(0, OutputStream::kStderr), 0U);
  EXPECT_TRUE(printed->open_line().is_open);
  EXPECT_EQ(printed->open_line().rank, 1U);
  EXPECT_EQ(PacketReader(kOutputMark).Unwrap(pipe.ReadAll()), "[0]abc\nhvdrun: x\n[1]de");
}

TEST(PrintedOutput, AFileThatIsReplacedCountsOnce) {
  const auto printed = MakePrinted();
  EXPECT_EQ(printed->FileBase(0, kPrintedOut, true), 0U);
  printed->BeginRotation(0, kPrintedOut, 100);
  EXPECT_EQ(printed->FileBase(0, kPrintedOut, true), 0U) << "killed before it was renamed";
  printed->BeginRotation(0, kPrintedOut, 100);
  EXPECT_EQ(printed->FileBase(0, kPrintedOut, false), 100U) << "killed after it was renamed";
  printed->BeginRotation(0, kPrintedOut, 50);
  printed->EndRotation(0, kPrintedOut);
  EXPECT_EQ(printed->FileBase(0, kPrintedOut, true), 150U);
}

// The text of one hvdrun up to a cut, and that of the next from there on, are the whole.
TEST(PrintedOutput, WhereverItEndsTheRestFollows) {
  std::minstd_rand random(1);
  for (int round = 0; round < 200; ++round) {
    const uint32_t ranks = 3;
    const auto printed = MakePrinted(ranks);
    // What each rank prints: lines of all lengths, and bars.
    std::vector<std::string> all(ranks);
    for (std::string& text : all) {
      for (int line = 0; line < 20; ++line) {
        text +=
            std::string(random() % (line == 7 ? 9000 : 40), static_cast<char>('a' + random() % 26));
        text += random() % 3 == 0 ? '\r' : '\n';
      }
      text += '\n';
    }
    std::string kept;
    PacketReader reader(kOutputMark);
    for (int life = 0; life < 3; ++life) {
      PacketPipe pipe;
      ScreenLine line;
      line.tracks = true;
      ScreenText text(kPrintedOut, {ranks, 2, false, {}}, line);
      if (const auto open = printed->open_line(); open.is_open)
        text.GoOnWith(open.rank, open.returned);
      std::vector<size_t> at(ranks);
      for (uint32_t rank = 0; rank < ranks; ++rank) at[rank] = printed->printed(rank, kPrintedOut);
      TimePoint now = TimePoint(std::chrono::seconds(100));
      const bool last = life == 2;
      for (int step = 0; last || step < 10; ++step) {
        bool any = false;
        for (uint32_t rank = 0; rank < ranks; ++rank) {
          const std::string piece = all[rank].substr(at[rank], 1 + random() % 300);
          at[rank] += piece.size();
          any = any || !piece.empty();
          text.Add(rank, piece, now);
        }
        now += std::chrono::milliseconds(random() % 100);
        text.Due(now);
        if (last && !any) text.Finish();
        const std::string shown = std::exchange(line.text, {});
        const std::vector<PrintedSpan> spans = std::exchange(line.spans, {});
        // Killed in the middle: what is held back, and what was shown but not written, is lost.
        if (!last && step == 9) break;
        ASSERT_TRUE(printed->Write(pipe.writing.get(), shown, spans));
        if (last && !any) break;
      }
      kept += reader.Unwrap(pipe.ReadAll());
    }
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(printed->printed(rank, kPrintedOut), all[rank].size()) << "round " << round;
      std::string lines, wanted;
      // Without prefixes, updates of bars and breaks: the whole lines.
      const std::string prefix = "[" + std::to_string(rank) + "]<stdout>:";
      std::string own;
      for (size_t begin = 0; begin < kept.size();) {
        const size_t end = std::min(kept.find('\n', begin), kept.size() - 1);
        const std::string one = kept.substr(begin, end - begin);
        for (size_t p = one.find(prefix); p != std::string::npos;) {
          const size_t from = p + prefix.size(), next = one.find("]<stdout>:", from);
          own += one.substr(from, next == std::string::npos ? next : next - 2 - from);
          p = one.find(prefix, from);
        }
        begin = end + 1;
      }
      std::string letters;
      for (char c : all[rank]) letters += c == '\n' || c == '\r' ? "" : std::string(1, c);
      std::string shown;
      for (char c : own) shown += c == '\r' ? "" : std::string(1, c);
      // Nothing twice: what is shown is a subsequence of what was printed.
      size_t place = 0;
      for (char c : shown) {
        while (place < letters.size() && letters[place] != c) ++place;
        ASSERT_LT(place, letters.size()) << "round " << round;
        ++place;
      }
    }
  }
}

TEST(PrintedOutput, APacketThatWasWrittenAndNotCountedIsPrintedOnce) {
  for (const bool was_written : {false, true}) {
    const auto printed = MakePrinted();
    PacketPipe pipe;
    ASSERT_TRUE(printed->Write(pipe.writing.get(), "a\n", {{0, 2, 0, kPrintedOut}}));
    // Killed at the write: nothing is noted after it, whether the bytes got there or not.
    ASSERT_FALSE(printed->Write(-1, "bcd", {{0, 3, 0, kPrintedOut}}));
    if (was_written) {
      const std::string packet = PacketOf(kOutputMark, 2, "bcd");
      ASSERT_EQ(::write(pipe.writing.get(), packet.data(), packet.size()),
                static_cast<ssize_t>(packet.size()));
    }
    printed->Recover();
    EXPECT_EQ(printed->printed(0, kPrintedOut), 5U);
    EXPECT_TRUE(printed->open_line().is_open);
    printed->Recover();  // the successor was killed before it wrote anything
    ASSERT_TRUE(printed->Write(pipe.writing.get(), "\nhvdrun: here\n", {}));
    EXPECT_EQ(printed->printed(0, kPrintedOut), 5U);
    EXPECT_EQ(PacketReader(kOutputMark).Unwrap(pipe.ReadAll()), "a\nbcd\nhvdrun: here\n");
  }
}

// An agent, the shared memory and the reader of the pipe go on while one hvdrun after the other is
// killed: before a packet is written, at that, and behind it.
TEST(PrintedOutput, HvdrunIsKilledAtAnyWriteAndNothingIsLostOrPrintedTwice) {
  std::minstd_rand random(1);
  for (int round = 0; round < 300; ++round) {
    const auto printed = MakePrinted(1);
    KeptOutput agent;
    agent.Enable();
    PacketReader reader(kOutputMark);
    std::string all, shown, pending;  // of the packet that may be missing
    uint64_t packets = 0;
    for (bool over = false; !over;) {
      printed->Recover();
      agent.NotePrinted({0, kPrintedOut, printed->printed(0, kPrintedOut)});
      std::string text;
      agent.ForEach([&](uint32_t, OutputStream, std::string_view bytes) { text += bytes; });
      for (bool killed = false; !killed && !over;) {
        if (all.size() < 1000) {
          const std::string line = "line " + std::to_string(all.size()) + "\n";
          agent.Add(0, kPrintedOut, line, {});
          all += line;
          text += line;
        }
        if (text.empty() && pending.empty()) {
          over = true;
          continue;
        }
        const std::vector<PrintedSpan> spans{{0, text.size(), 0, kPrintedOut}};
        const uint64_t fate = random() % 6;
        killed = fate < 3;
        if (fate == 0) continue;
        if (killed) {
          if (pending.empty()) pending = text;
          ASSERT_FALSE(printed->Write(-1, text, spans));
          if (fate == 2) shown += reader.Unwrap(PacketOf(kOutputMark, packets + 1, pending));
          continue;
        }
        PacketPipe pipe;
        ASSERT_TRUE(printed->Write(pipe.writing.get(), text, spans));
        shown += reader.Unwrap(pipe.ReadAll());
        packets += (pending.empty() ? 0 : 1) + (text.empty() ? 0 : 1);
        pending.clear();
        text.clear();
        if (random() % 2 == 0)
          agent.NotePrinted({0, kPrintedOut, printed->printed(0, kPrintedOut)});
      }
    }
    ASSERT_EQ(shown, all) << "round " << round;
  }
}

}  // namespace
}  // namespace hvd
