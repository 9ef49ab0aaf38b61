// The records that agents send from the recorders of their ranks, and where they go.
#include "launcher/driver/recorder_messages.h"

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

// Rank 0 on host a, rank 1 on host b.
class RecorderMessagesTest : public testing::Test {
 protected:
  static DriverOptions Options() {
    DriverOptions options;
    options.plan.hosts = {"a", "b"};
    options.plan.ranks = {{0, 0, 0, 1, 0, 2}, {1, 1, 0, 1, 1, 2}};
    options.policy = FixedPolicy(2);
    options.hosts.resize(2);
    options.named_hosts.resize(2);
    return options;
  }
  // The text of a timeline that took `messages` while it was open.
  std::string FileAfter(std::unique_ptr<TimelineService>& timeline,
                        const std::function<void()>& messages) {
    const std::string path = testing::TempDir() + "recorder_messages_test.json";
    timeline = parts_.OpenTimelineFile(path, 0, 0, TimePoint());
    messages();
    EXPECT_TRUE(timeline->Close().ok());
    std::ifstream file(path);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    std::filesystem::remove(path);
    return text;
  }

  EventQueue events_{[](const JobEvent&) {}};
  DriverParts parts_{Options(), events_, TimePoint()};
  RecorderMessages messages_{parts_};
};

TEST_F(RecorderMessagesTest, ATimelineNamesTheRankAndItsHost) {
  const std::string text = FileAfter(parts_.timeline, [this] {
    EXPECT_TRUE(messages_.Take(1, TraceBegun{1, 1, 3, 0}).ok());
    EXPECT_TRUE(messages_.Take(1, TraceRecords{1, 1, 3, 0, {}}).ok());
  });
  EXPECT_THAT(text, HasSubstr("rank 1 on b"));
}

TEST_F(RecorderMessagesTest, ARingForTheDumpOfAFailedJobGoesThereAlone) {
  const RingReply ring{kFailureDump, 1, 1, 3, {}};
  EXPECT_THAT(FileAfter(parts_.failure_dump, [&] { (void)messages_.Take(1, ring); }),
              HasSubstr("rank 1 on b"));
  EXPECT_THAT(FileAfter(parts_.timeline, [&] { (void)messages_.Take(1, ring); }),
              Not(HasSubstr("rank 1 on b")));
}

TEST_F(RecorderMessagesTest, WithoutAFileRecordsAreDropped) {
  EXPECT_TRUE(messages_.Take(1, TraceBegun{}).ok());
  EXPECT_TRUE(messages_.Take(1, TraceRecords{}).ok());
  EXPECT_TRUE(messages_.Take(1, RingReply{kFailureDump, 1, 1, 3, {}}).ok());
}

TEST_F(RecorderMessagesTest, AHostWithoutAClockIsNoHostOfTheJob) {
  EXPECT_TRUE(messages_.Take(7, RingReply{kFailureDump, 1, 1, 3, {}}).ok());
}

TEST_F(RecorderMessagesTest, AHostCountsForItsOwnWorkersOnly) {
  CountsReply told;
  told.workers.emplace_back();  // worker 0
  EXPECT_TRUE(messages_.Take(0, told).ok());
  EXPECT_EQ(messages_.Take(1, told).message(), "its agent reported unknown worker 0");
}

TEST(CheckWorker, AWorkerBelongsToOneHost) {
  const std::vector<Placement> workers = {{0, 0, 0, 1, 0, 2}, {1, 1, 0, 1, 1, 2}};
  EXPECT_TRUE(CheckWorker(1, 1, workers).ok());
  EXPECT_EQ(CheckWorker(1, 0, workers).code(), Code::kInvalidArgument);
  EXPECT_EQ(CheckWorker(2, 0, workers).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace hvd
