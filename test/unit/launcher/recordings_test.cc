// The records that agents send from the recorders of their ranks, and where they go.
#include "launcher/driver/recordings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "launcher/wire/message_rights.h"

namespace hvd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr TimePoint kNow{};

// Rank 0 on host a, rank 1 on host b.
class RecordingsTest : public testing::Test {
 protected:
  RecordingsTest() { options_.policy = FixedPolicy(2); }
  ~RecordingsTest() override {
    std::filesystem::remove(timeline_);
    std::filesystem::remove(dump_);
  }
  static std::string TextOf(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::string timeline_ = testing::TempDir() + "recordings_test.json";
  const std::string dump_ = testing::TempDir() + "recordings_test_dump.json";
  const Plan plan_{.hosts = {"a", "b"}, .ranks = {{0, 0, 0, 1, 0, 2}, {1, 1, 0, 1, 1, 2}}};
  DriverOptions options_;
  asio::io_context io_;
  JobState state_{plan_, {}};
  AgentSet agents_;
  Screen screen_{io_, plan_, 2, options_.settings, options_.prefix, [](uint32_t, uint64_t) {}};
  Recordings recordings_{io_, options_, state_, kNow, agents_, screen_};
};

TEST_F(RecordingsTest, ATimelineNamesTheRankAndItsHost) {
  options_.settings.timeline_filename = timeline_;
  recordings_.OpenTimeline(kNow);
  EXPECT_TRUE(recordings_.Handle(1, TraceBegun{1, 1, 3, 0}, kNow).ok());
  EXPECT_TRUE(recordings_.Handle(1, TraceRecords{1, 1, 3, 0, {}}, kNow).ok());
  recordings_.CloseFiles();
  EXPECT_THAT(TextOf(timeline_), HasSubstr("rank 1 on b"));
}

TEST_F(RecordingsTest, ARingForTheDumpOfAFailedJobGoesThereAlone) {
  options_.settings.timeline_filename = timeline_;
  options_.settings.dump_on_failure = dump_;
  recordings_.OpenTimeline(kNow);
  state_.failure = JobFailure{};
  recordings_.BeginFailureDump(kNow);
  EXPECT_TRUE(recordings_.Handle(1, RingReply{kFailureDump, 1, 1, 3, {}}, kNow).ok());
  recordings_.CloseFiles();
  EXPECT_THAT(TextOf(dump_), HasSubstr("rank 1 on b"));
  EXPECT_THAT(TextOf(timeline_), Not(HasSubstr("rank 1 on b")));
}

TEST_F(RecordingsTest, AJobThatHasNotFailedGetsNoDump) {
  options_.settings.dump_on_failure = dump_;
  recordings_.BeginFailureDump(kNow);
  recordings_.CloseFiles();
  EXPECT_FALSE(std::filesystem::exists(dump_));
}

TEST_F(RecordingsTest, WithoutAFileRecordsAreDropped) {
  EXPECT_TRUE(recordings_.Handle(1, TraceBegun{}, kNow).ok());
  EXPECT_TRUE(recordings_.Handle(1, TraceRecords{}, kNow).ok());
  EXPECT_TRUE(recordings_.Handle(1, RingReply{kFailureDump, 1, 1, 3, {}}, kNow).ok());
}

TEST_F(RecordingsTest, AHostWithoutAClockIsNoHostOfTheJob) {
  EXPECT_TRUE(recordings_.Handle(7, RingReply{kFailureDump, 1, 1, 3, {}}, kNow).ok());
}

TEST_F(RecordingsTest, AHostCountsForItsOwnWorkersOnly) {
  CountsReply reply;
  reply.workers.emplace_back();  // worker 0
  EXPECT_TRUE(recordings_.Handle(0, reply, kNow).ok());
  EXPECT_EQ(recordings_.Handle(1, reply, kNow).message(), "its agent reported unknown worker 0");
}

TEST(CheckWorker, AWorkerBelongsToOneHost) {
  const std::vector<Placement> workers = {{0, 0, 0, 1, 0, 2}, {1, 1, 0, 1, 1, 2}};
  EXPECT_TRUE(CheckWorker(1, 1, workers).ok());
  EXPECT_EQ(CheckWorker(1, 0, workers).code(), Code::kInvalidArgument);
  EXPECT_EQ(CheckWorker(2, 0, workers).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace hvd
