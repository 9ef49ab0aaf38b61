#include "runtime/backends/hosts/members/local_sum.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace hvd {
namespace {

constexpr size_t kCount = 100'000;  // four chunks

class LocalSumTest : public ::testing::Test {
 protected:
  LocalSumTest() {
    call_.dtype = DType::kFloat32;
    call_.count = kCount;
  }

  // The same sum, as another member on the host has it.
  LocalSum OfAMember() {
    return LocalSum(call_, {a_.data(), b_.data()}, sum_.data(), result_status_.get(), &mark_);
  }

  CollectiveCall call_;
  std::vector<float> a_ = std::vector<float>(kCount, 1), b_ = std::vector<float>(kCount, 2);
  std::vector<float> sum_ = std::vector<float>(kCount, 0);
  std::unique_ptr<ResultStatus> result_status_ = std::make_unique<ResultStatus>();
  WorkMark mark_{0};
};

TEST_F(LocalSumTest, IsFinishedByWhoeverHelps) {
  LocalSum leader = OfAMember(), member = OfAMember();
  EXPECT_TRUE(member.Help());
  EXPECT_TRUE(leader.Help());
  EXPECT_EQ(sum_.front(), 3);
  EXPECT_EQ(sum_.back(), 3);
}

TEST_F(LocalSumTest, StopsAtOnceWhenNobodyIsAtWork) {
  LocalSum leader = OfAMember(), member = OfAMember();
  EXPECT_TRUE(leader.Stop());
  EXPECT_FALSE(member.Help());
  EXPECT_EQ(sum_.front(), 0) << "a chunk was taken after the stop";
}

TEST_F(LocalSumTest, WaitsForTheChunksThatWereTakenBeforeTheStop) {
  LocalSum leader = OfAMember();
  result_status_->claimed = 2;
  result_status_->finished = 1;
  EXPECT_FALSE(leader.Stop());
  EXPECT_FALSE(leader.Stop());
  result_status_->finished = 2;
  EXPECT_TRUE(leader.Stop());
}

// A member saw that there is something left, and reaches for it just after the stop: it gets
// nothing.
TEST_F(LocalSumTest, WaitsForNobodyWhoCameTooLateToTakeAChunk) {
  LocalSum leader = OfAMember();
  result_status_->claimed = 1;
  EXPECT_FALSE(leader.Stop());
  result_status_->claimed.fetch_add(1);
  result_status_->finished = 1;
  EXPECT_TRUE(leader.Stop());
}

TEST_F(LocalSumTest, HasNothingToStopWhenAllIsFinished) {
  LocalSum leader = OfAMember();
  EXPECT_TRUE(leader.Help());
  EXPECT_TRUE(leader.Stop());
}

}  // namespace
}  // namespace hvd
