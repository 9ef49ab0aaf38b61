// Waits as ranks note them on their boards, and as agents read them there.
#include "launcher/generation/rank_waits.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace hvd {
namespace {

using std::chrono::milliseconds;

class RankWaitsTest : public ::testing::Test {
 protected:
  WaitNote Note(uint64_t id, uint32_t thread, int64_t waited_ms, int64_t seen_ms = 0) {
    WaitNote note;
    note.key = id + 1;
    note.id = id;
    note.thread = thread;
    note.since_ns = (now_ - milliseconds(waited_ms)).time_since_epoch().count();
    note.seen_ns = (now_ - milliseconds(seen_ms)).time_since_epoch().count();
    note.awaited = awaited_;
    note.name = "x";
    return note;
  }
  void Limits(uint64_t warning_ms, uint64_t shutdown_ms) {
    board().warning_ms = warning_ms;
    board().shutdown_ms = shutdown_ms;
  }
  StallBoard& board() { return page_.rank(0).stalls; }

  TimePoint now_{std::chrono::hours(1)};
  std::vector<uint32_t> awaited_ = {2, 3};
  std::vector<std::byte> memory_ = std::vector<std::byte>(JobPage::BytesFor(1) + 4096);
  JobPage page_ = JobPage::Format(
      reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory_.data()) + 4095) & ~4095UL),
      1, 1);
};

TEST_F(RankWaitsTest, AreReadAsTheyWereNoted) {
  NoteSubmitter(board(), 5);
  NoteFinished(board(), 8, "before");
  NotePending(board(), std::vector<uint64_t>{10, 11});
  NoteWait(board(), Note(9, 5, 3000, 40));
  const RankFacts facts = FactsFromPage(page_.rank(0), now_);
  ASSERT_EQ(facts.waits.size(), 1U);
  EXPECT_EQ(facts.waits[0].key, 10U);
  EXPECT_EQ(facts.waits[0].waited_ms, 3000);
  EXPECT_EQ(facts.waits[0].seen_ms, 40);
  EXPECT_EQ(facts.waits[0].awaited, awaited_);
  EXPECT_EQ(facts.waits[0].name, "x");
  EXPECT_EQ(facts.finished, 8U);
  EXPECT_EQ(facts.last_finished, "before");
  EXPECT_EQ(facts.pending, (std::vector<uint64_t>{10, 11}));
  EXPECT_EQ(facts.all_wait, 1);
  EndWait(board(), 5);
  EXPECT_TRUE(FactsFromPage(page_.rank(0), now_).waits.empty());
}

TEST_F(RankWaitsTest, TheLongestCounts) {
  EXPECT_EQ(LongestWait(page_.rank(0), now_), Duration{});
  NoteWait(board(), Note(1, 5, 3000, 40));
  NoteWait(board(), Note(2, 6, 5000, 40));
  NoteWait(board(), Note(3, 7, 9000, 5001));
  EXPECT_EQ(LongestWait(page_.rank(0), now_), milliseconds(5000)) << "the last is seen no more";
}

TEST_F(RankWaitsTest, TheFirstCollectiveOfAGenerationIsReportedAfterTenSeconds) {
  Limits(60'000, 0);
  StallWatch watch;
  NoteWait(board(), Note(1, 5, 9999));
  EXPECT_EQ(watch.FirstOverdue(page_.rank(0), 2, now_), std::nullopt);
  NoteWait(board(), Note(1, 5, 10'000));
  EXPECT_TRUE(watch.FirstOverdue(page_.rank(0), 2, now_).has_value());
  EXPECT_EQ(watch.FirstOverdue(page_.rank(0), 2, now_), std::nullopt) << "once";
  NoteFinished(board(), 1, "x");
  EXPECT_EQ(watch.FirstOverdue(page_.rank(0), 3, now_), std::nullopt) << "it is not the first";
}

TEST_F(RankWaitsTest, OfOneThreadTakeOneRecord) {
  for (uint64_t id : {1, 2, 3, 4, 5, 6}) NoteWait(board(), Note(id, 5, 1));
  ASSERT_EQ(FactsFromPage(page_.rank(0), now_).waits.size(), 1U);
  EXPECT_EQ(FactsFromPage(page_.rank(0), now_).waits[0].id, 6U);
  for (uint32_t thread : {6U, 7U, 8U, 9U}) NoteWait(board(), Note(thread, thread, 1));
  EXPECT_EQ(FactsFromPage(page_.rank(0), now_).waits.size(), 4U) << "more are not kept";
}

TEST_F(RankWaitsTest, DoNotSpeakForThreadsThatDoNotWait) {
  NoteSubmitter(board(), 5);
  NoteSubmitter(board(), 6);
  NoteWait(board(), Note(9, 5, 3000));
  EXPECT_EQ(FactsFromPage(page_.rank(0), now_).all_wait, 0);
  NoteWait(board(), Note(10, 6, 3000));
  EXPECT_EQ(FactsFromPage(page_.rank(0), now_).all_wait, 1);
  for (uint32_t thread = 7; thread < 20; ++thread) NoteSubmitter(board(), thread);
  EXPECT_EQ(FactsFromPage(page_.rank(0), now_).all_wait, 0) << "more threads than are kept";
}

TEST_F(RankWaitsTest, ThatNobodyLooksAtAreOver) {
  NoteWait(board(), Note(9, 5, 30000, 6000));
  EXPECT_TRUE(FactsFromPage(page_.rank(0), now_).waits.empty());
}

TEST_F(RankWaitsTest, ABoardThatWasOverwrittenIsReadWithoutHarm) {
  std::fill_n(reinterpret_cast<char*>(&board()), sizeof board(), '\x82');
  board().waits[0].version = 2;
  const RankFacts facts = FactsFromPage(page_.rank(0), now_);
  EXPECT_LE(facts.waits.size(), 4U);
  EXPECT_EQ(facts.all_wait, 0);
}

TEST_F(RankWaitsTest, AreReportedOncePerInterval) {
  StallWatch watch;
  Limits(1000, 0);
  NoteWait(board(), Note(9, 5, 900));
  NoteWait(board(), Note(10, 6, 900));
  EXPECT_FALSE(watch.Overdue(page_.rank(0), now_));
  const auto look = [&](int later) {
    return watch.Overdue(page_.rank(0), now_ + milliseconds(later));
  };
  EXPECT_TRUE(look(100));
  EXPECT_TRUE(look(100)) << "the other one";
  EXPECT_FALSE(look(600));
  EXPECT_TRUE(look(1200));
}

TEST_F(RankWaitsTest, AreReportedBeforeALimitEndsThem) {
  StallWatch watch;
  Limits(60000, 4000);
  NoteWait(board(), Note(9, 5, 2400));
  EXPECT_FALSE(watch.Overdue(page_.rank(0), now_));
  EXPECT_TRUE(watch.Overdue(page_.rank(0), now_ + milliseconds(200)));
  Limits(0, 0);
  EXPECT_FALSE(StallWatch().Overdue(page_.rank(0), now_ + milliseconds(900))) << "no stall check";
}

TEST(OperationKeys, AreEqualForEqualNamesOfOneSetOnly) {
  EXPECT_EQ(KeyOf(1, "x"), KeyOf(1, "x"));
  EXPECT_NE(KeyOf(1, "x"), KeyOf(2, "x"));
  EXPECT_NE(KeyOf(1, "x"), KeyOf(1, "y"));
}

}  // namespace
}  // namespace hvd
