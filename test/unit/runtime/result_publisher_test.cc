#include "runtime/backends/hosts/members/result_publisher.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace hvd {
namespace {

class ResultPublisherTest : public ::testing::Test {
 protected:
  // An operation with as many tensors as there are statuses.
  std::shared_ptr<LeaderOp> Operation(const std::vector<ResultStatus*>& statuses) {
    auto op = std::make_shared<LeaderOp>();
    for (ResultStatus* status : statuses) {
      op->parts.push_back(std::make_shared<LeaderTensor>());
      op->parts.back()->result_status = status;
    }
    return op;
  }

  LocalSegmentSource segments_;
  SharedHeap heap_{segments_};
  int wakes_ = 0;
  bool broken_ = false, broke_off_ = false;
  ResultPublisher publisher_{heap_,
                             {std::chrono::seconds(60), [this] { ++wakes_; },
                              [this] { return broken_; }, [this] { return broke_off_; }}};
  ResultStatus first_{}, second_{};
};

TEST_F(ResultPublisherTest, ResultsOfABatchWakeTheHostOnce) {
  const std::vector<std::shared_ptr<LeaderOp>> batch = {Operation({&first_}),
                                                        Operation({&second_})};
  void* memory = heap_.Allocate(64, true);
  batch[0]->parts[0]->memory = static_cast<std::byte*>(memory);
  first_.result_bytes = 64;
  publisher_.PublishResults(batch);
  EXPECT_EQ(first_.now(), Phase::kDone);
  EXPECT_EQ(second_.now(), Phase::kDone);
  EXPECT_EQ(first_.result.offset, heap_.Locate(memory, 64)->offset);
  EXPECT_EQ(wakes_, 1);
}

TEST_F(ResultPublisherTest, AFailureReachesEveryTensorWithItsText) {
  publisher_.PublishFailure(*Operation({&first_, &second_}), Aborted("rank 3 is gone"));
  for (const ResultStatus* status : {&first_, &second_}) {
    EXPECT_EQ(status->now(), Phase::kFailed);
    EXPECT_EQ(status->code, static_cast<uint32_t>(Code::kAborted));
    EXPECT_EQ(status->text_bytes, std::string("rank 3 is gone").size());
    EXPECT_EQ(status->broke, 0u);
  }
  EXPECT_EQ(wakes_, 1);
}

TEST_F(ResultPublisherTest, AFailureWithWhichTheWorkEndedSaysSo) {
  broke_off_ = true;
  publisher_.PublishFailure(*Operation({&first_}), Aborted("rank 3 is gone"));
  EXPECT_EQ(first_.broke, 1u);
}

TEST_F(ResultPublisherTest, TheMemoryOfAFailedSumIsFreedAndHoldsTheTextNow) {
  void* sum = heap_.Allocate(4096, true);
  auto op = Operation({&first_});
  op->parts[0]->memory = static_cast<std::byte*>(sum);
  publisher_.PublishFailure(*op, Aborted("text"));
  EXPECT_NE(op->parts[0]->memory, sum);
  EXPECT_STREQ(reinterpret_cast<const char*>(op->parts[0]->memory), "text");
  EXPECT_FALSE(heap_.Free(sum)) << "it is free already";
}

TEST_F(ResultPublisherTest, TheMemoryOfASumWithAChunkUnderWayIsKept) {
  broken_ = true;  // no member finishes its chunk any more
  std::vector<float> values(1 << 16, 1);
  WorkMark at_work{};
  void* sum = heap_.Allocate(values.size() * sizeof(float), true);
  auto op = Operation({&first_});
  CollectiveCall call;
  call.dtype = DType::kFloat32;
  call.count = values.size();
  op->parts[0]->local_sum = LocalSum(call, {values.data()}, sum, &first_, &at_work);
  op->parts[0]->memory = static_cast<std::byte*>(sum);
  first_.claimed = 1;  // a member has taken a chunk and stopped
  publisher_.PublishFailure(*op, Aborted("text"));
  EXPECT_EQ(first_.now(), Phase::kFailed);
  EXPECT_TRUE(heap_.Free(sum)) << "it was still allocated";
}

}  // namespace
}  // namespace hvd
