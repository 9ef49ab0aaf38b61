// Records of one rank as events: the rows that tools for Horovod's timeline know, and what damage
// and gaps make of them.
#include "runtime/trace/rank_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "runtime/trace/recorder.h"
#include "runtime/trace/ring_reader.h"
#include "test/unit/trace/ring_memory.h"

namespace hvd {
namespace {

using testing::ElementsAre;

class RankEventsTest : public testing::Test {
 protected:
  RankEventsTest() {
    sink_.event = [this](const TimelineEvent& event) {
      const char phase = static_cast<char>(event.phase);
      seen_.push_back(phase + (" " + event.name) + " [" + std::string(event.row) + "] " +
                      event.args);
    };
    sink_.submission = [this](const Submission& submission) {
      submissions_.push_back(submission.round);
    };
  }
  void Tell(const std::string& name) { recorder_.WriteName(&name_, name); }
  void Write(TraceKind kind, uint64_t stamp, uint32_t rank = 0, uint32_t status = 0) {
    recorder_.Write({.stamp = stamp,
                     .kind = kind,
                     .id = name_.id,
                     .bytes = 48,
                     .rank = rank,
                     .status = status});
  }
  std::vector<std::string> Take(uint64_t lost = 0) {
    std::vector<TraceRecord> records;
    reader_.Read(&records, 1000);
    seen_.clear();
    events_.Add(records, lost, sink_);
    return seen_;
  }

  RingMemory memory_{1024};
  Recorder recorder_{memory_.span()};
  RingReader reader_{memory_.span()};
  TraceName name_;
  TimelineSink sink_;
  RankEvents events_{3};
  std::vector<std::string> seen_;
  std::vector<uint32_t> submissions_;
};

TEST_F(RankEventsTest, AnAllreduceHasTheEventsOfHorovod) {
  Tell(std::string("grad\0float32\0[3, 4]", 19));
  Write(TraceKind::kSubmit, 10, 2, 7);
  Write(TraceKind::kArrive, 20, 1);
  Write(TraceKind::kStart, 21);
  Write(TraceKind::kDone, 30);
  EXPECT_THAT(Take(),
              ElementsAre("B NEGOTIATE_ALLREDUCE [grad] ", "X 3 [grad] ", "X 1 [grad] ",
                          "E  [grad] ", "B ALLREDUCE [grad] ",
                          "E  [grad] \"dtype\":\"float32\",\"shape\":\"[3, 4]\",\"bytes\":48"));
  EXPECT_THAT(submissions_, ElementsAre(7));
}

TEST_F(RankEventsTest, APeerThatIsFasterAnnouncesTheNextRound) {
  Tell("grad");
  Write(TraceKind::kSubmit, 10, 2);
  Write(TraceKind::kArrive, 11, 1);
  Write(TraceKind::kStart, 12);
  Write(TraceKind::kArrive, 13, 1);
  Write(TraceKind::kDone, 14);
  Write(TraceKind::kSubmit, 20, 2);
  EXPECT_THAT(Take(), ElementsAre("B NEGOTIATE_ALLREDUCE [grad] ", "X 3 [grad] ", "X 1 [grad] ",
                                  "E  [grad] ", "B ALLREDUCE [grad] ", "E  [grad] \"bytes\":48",
                                  "B NEGOTIATE_ALLREDUCE [grad] ", "X 1 [grad] ", "X 3 [grad] "));
}

TEST_F(RankEventsTest, APeerThatIsFirstBeginsTheNegotiation) {
  Tell("grad");
  Write(TraceKind::kArrive, 10, 1);
  Write(TraceKind::kSubmit, 20, 2);
  EXPECT_THAT(Take(), ElementsAre("B NEGOTIATE_ALLREDUCE [grad] ", "X 1 [grad] ", "X 3 [grad] "));
}

TEST_F(RankEventsTest, AFailureEndsTheNegotiation) {
  Tell("grad");
  Write(TraceKind::kSubmit, 10, 2);
  Write(TraceKind::kDone, 20, 2, 6);
  EXPECT_THAT(Take(), ElementsAre("B NEGOTIATE_ALLREDUCE [grad] ", "X 3 [grad] ",
                                  "E  [grad] \"bytes\":48,\"error\":\"aborted\""));
}

TEST_F(RankEventsTest, WhatWasAlwaysRecordedIsATick) {
  Tell("grad");
  Write(TraceKind::kDone, 20);
  EXPECT_THAT(Take(), ElementsAre("X ALLREDUCE [grad] \"bytes\":48"));
}

TEST_F(RankEventsTest, WaitsAndCyclesAreOnTheRowOfTheRank) {
  Tell("grad");
  Write(TraceKind::kWaitBegin, 20);
  Write(TraceKind::kWaitEnd, 30);
  Write(TraceKind::kWaitEnd, 31);
  Write(TraceKind::kCycle, 40);
  EXPECT_THAT(Take(), ElementsAre("B WAIT [] \"tensor\":\"grad\"", "E  [] ", "i CYCLE_START [] "));
}

TEST_F(RankEventsTest, AGapEndsWhatIsOpenAndIsShown) {
  Tell("grad");
  Write(TraceKind::kSubmit, 10, 2);
  Take();
  Write(TraceKind::kDone, 50);
  EXPECT_THAT(Take(12), ElementsAre("E  [grad] \"complete\":false",
                                    "i EVENTS_LOST [] \"count\":12,\"in_all\":12",
                                    "X ALLREDUCE [grad] \"bytes\":48"));
  EXPECT_EQ(events_.lost(), 12U);
}

TEST_F(RankEventsTest, ANameThatWasOverwrittenHasANumber) {
  recorder_.Write({.stamp = 1, .kind = TraceKind::kDone, .id = 9, .bytes = 1});
  EXPECT_THAT(Take(), ElementsAre("X ALLREDUCE [tensor 9] \"bytes\":1"));
}

TEST_F(RankEventsTest, AnEmptyNameIsNotTheRowOfTheRank) {
  recorder_.Write({.stamp = 0, .kind = TraceKind::kName, .part = TraceRecord::kLastPiece, .id = 9});
  recorder_.Write({.stamp = 1, .kind = TraceKind::kDone, .id = 9, .bytes = 1});
  EXPECT_THAT(Take(), ElementsAre("X ALLREDUCE [tensor 9] \"bytes\":1"));
}

// Whatever is in the records, no event of a row ends that has not begun.
TEST_F(RankEventsTest, AnyRecordsGiveEventsThatNest) {
  const char* one = std::getenv("HVD_TEST_SEED");
  const uint32_t seed = one != nullptr ? static_cast<uint32_t>(std::strtoul(one, nullptr, 10))
                                       : std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::minstd_rand random(seed);
  std::map<std::string, int> open;
  TimelineSink sink;
  std::map<std::string, int64_t> last;
  sink.event = [&](const TimelineEvent& event) {
    int& depth = open[std::string(event.row)];
    if (event.phase == TimelineEvent::Phase::kBegin) ++depth;
    if (event.phase == TimelineEvent::Phase::kEnd) --depth;
    EXPECT_GE(depth, 0);
    // Activities come with their operation, when other rows have later events already.
    int64_t& row_ns = last[std::string(event.row)];
    EXPECT_GE(event.ns, row_ns);
    row_ns = event.ns;
  };
  sink.submission = [](const Submission&) {};
  for (int i = 0; i < 20000; ++i) {
    TraceRecord record;
    record.stamp = random() % 1000000;
    record.kind = static_cast<TraceKind>(random() % 16);
    record.collective = static_cast<uint8_t>(random() % 40);
    record.part = static_cast<uint16_t>(random() % 3 == 0 ? 0x8000 : random() % 4);
    record.id = random() % 5;
    record.bytes = random();
    record.rank = random() % 4;
    record.status = random() % 20;
    if (record.kind == TraceKind::kName) {  // two tensors have two names, and with them two rows
      record.collective = static_cast<uint8_t>(1 + random() % 40);
      record.stamp = record.stamp << 8U | ('a' + record.id);
    }
    events_.Add(std::span(&record, 1), random() % 100 == 0 ? 3 : 0, sink);
  }
  events_.Close(sink);
  for (const auto& [row, depth] : open) EXPECT_EQ(depth, 0) << row;
}

TEST_F(RankEventsTest, ActivitiesLieInTheirOperationAlsoWhereOtherRowsWentOn) {
  Tell("grad");
  const auto activity = [this](uint64_t stamp, TraceActivity what, TraceAlgorithm way = {},
                               uint32_t tensors = 1) {
    recorder_.Write({.stamp = stamp,
                     .kind = TraceKind::kActivity,
                     .part = TraceRecord::PartOf(what, way),
                     .id = name_.id,
                     .bytes = 96,
                     .rank = tensors});
  };
  activity(5, TraceActivity::kCopyIn);
  activity(8, TraceActivity::kNone);
  Write(TraceKind::kSubmit, 10, 2);
  Write(TraceKind::kStart, 20);
  Write(TraceKind::kStep, 100);
  activity(30, TraceActivity::kQueue);
  activity(40, TraceActivity::kGloo, TraceAlgorithm::kSliced, 3);
  activity(90, TraceActivity::kHandOut);
  recorder_.Write({.stamp = 110,
                   .kind = TraceKind::kDone,
                   .part = TraceRecord::PartOf(TraceActivity::kNone, TraceAlgorithm::kSliced),
                   .id = name_.id,
                   .bytes = 48});
  std::vector<int64_t> stamps;
  sink_.event = [&stamps, seen = sink_.event](const TimelineEvent& event) {
    seen(event);
    if (!event.row.empty()) stamps.push_back(event.ns);
  };
  EXPECT_THAT(
      Take(),
      ElementsAre("B MEMCPY_IN_FUSION_BUFFER [grad] \"bytes\":96", "E  [grad] ",
                  "B NEGOTIATE_ALLREDUCE [grad] ", "X 3 [grad] ", "E  [grad] ",
                  "B ALLREDUCE [grad] ", "i OPTIMIZER_STEP [] ", "B QUEUE [grad] \"bytes\":96",
                  "E  [grad] ",
                  "B GLOO_ALLREDUCE [grad] \"bytes\":96,\"tensors\":3,\"algorithm\":\"sliced\"",
                  "E  [grad] ", "B HAND_OUT [grad] \"bytes\":96", "E  [grad] ",
                  "E  [grad] \"bytes\":48,\"algorithm\":\"sliced\""));
  EXPECT_THAT(stamps, ElementsAre(5, 8, 10, 10, 20, 20, 30, 40, 40, 90, 90, 110, 110));
}

TEST_F(RankEventsTest, AnActivityEndsWithItsOperationAtTheLatest) {
  Tell("grad");
  recorder_.Write(
      {.stamp = 5,
       .kind = TraceKind::kActivity,
       .part = TraceRecord::PartOf(TraceActivity::kWaitForHosts, TraceAlgorithm::kUnknown),
       .id = name_.id});
  Write(TraceKind::kDone, 20, 2, 6);
  EXPECT_THAT(Take(), ElementsAre("B WAIT_FOR_HOSTS [grad] \"bytes\":0", "E  [grad] ",
                                  "X ALLREDUCE [grad] \"bytes\":48,\"error\":\"aborted\""));
}

TEST(ActivityNamesTest, ExchangesHaveTheNamesOfHorovodAndOthersNone) {
  EXPECT_EQ(ActivityName(TraceActivity::kGloo, 2), "GLOO_BCAST");
  EXPECT_EQ(ActivityName(TraceActivity::kMpi, 3), "MPI_ALLTOALL");
  EXPECT_EQ(ActivityName(TraceActivity::kCopyOut, 0), "MEMCPY_OUT_FUSION_BUFFER");
  EXPECT_EQ(ActivityName(TraceActivity::kNone, 0), "");
  EXPECT_EQ(ActivityName(static_cast<TraceActivity>(200), 0), "");
  EXPECT_EQ(AlgorithmName(static_cast<TraceAlgorithm>(200)), "");
}

TEST_F(RankEventsTest, PointsOfTheProgramAreMarks) {
  Tell("grad");
  Write(TraceKind::kStep, 10);
  Write(TraceKind::kCommit, 20);
  Write(TraceKind::kStall, 30);
  EXPECT_THAT(Take(), ElementsAre("i OPTIMIZER_STEP [] ", "i COMMIT [] ",
                                  "i STALL [grad] \"waited_ns\":48"));
}

TEST_F(RankEventsTest, WhatIsOpenCanBeEndedWithoutForgettingNames) {
  Tell("grad");
  Write(TraceKind::kSubmit, 10, 2);
  Take();
  seen_.clear();
  events_.EndAll(sink_);
  EXPECT_THAT(seen_, ElementsAre("E  [grad] \"complete\":false"));
  Write(TraceKind::kDone, 20);
  EXPECT_THAT(Take(), ElementsAre("X ALLREDUCE [grad] \"bytes\":48"));
}

}  // namespace
}  // namespace hvd
