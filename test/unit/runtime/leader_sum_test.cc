// A leader offers its part of a sum with its report, and adds up the offers of the others.
#include "runtime/backends/hosts/leader_sum.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace hvd {
namespace {

std::string BytesOf(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

class LeaderSumTest : public testing::Test {
 protected:
  LeaderSumTest() {
    op_.hosts = std::make_shared<HostParts>(HostMap{{0, 1, 2}, 1}, std::vector<uint32_t>{0, 1, 2});
    op_.set_size = 3;
    entry_.participants = 3;
  }

  // A sum of a rank that is alone on its host, with one more tensor.
  LeaderTensor& Add(std::vector<float>& values) {
    auto part = std::make_shared<LeaderTensor>();
    part->call.collective = Collective::kAllreduce;
    part->call.dtype = DType::kFloat32;
    part->call.count = values.size();
    part->straight = true;
    part->input = part->output = values.data();
    part->result_status = &result_status_;
    op_.parts.push_back(part);
    return *part;
  }
  std::vector<LeaderItem> Items() {
    std::vector<LeaderItem> items;
    for (size_t p = 0; p < op_.parts.size(); ++p)
      items.push_back({&op_, op_.parts[p].get(), &entry_, p});
    return items;
  }

  ResultStatus result_status_{};
  RunEntry entry_;
  LeaderOp op_;
};

TEST_F(LeaderSumTest, OffersAllTensorsOneBehindTheOther) {
  std::vector<float> a = {1, 2}, b = {3};
  Add(a);
  Add(b);
  EXPECT_EQ(SumToOffer(op_), BytesOf({1, 2, 3}));
}

TEST_F(LeaderSumTest, OffersNothingElse) {
  std::vector<float> a = {1, 2}, large(600);
  LeaderTensor& part = Add(a);
  op_.ready.failure = Aborted("no");
  EXPECT_EQ(SumToOffer(op_), "") << "a failure";
  op_.ready.failure = Status::Ok();
  op_.ready.participants = 2;
  EXPECT_EQ(SumToOffer(op_), "") << "a report that says more";
  op_.ready.participants = 0;
  part.call.op = ReduceOp::kAdasum;
  EXPECT_EQ(SumToOffer(op_), "") << "no plain sum";
  part.call.op = ReduceOp::kSum;
  part.call.collective = Collective::kBroadcast;
  EXPECT_EQ(SumToOffer(op_), "") << "no sum";
  part.call.collective = Collective::kAllreduce;
  EXPECT_NE(SumToOffer(op_), "");
  Add(large);
  EXPECT_EQ(SumToOffer(op_), "") << "too large";
}

// The first two cancel out only where they are added first.
TEST_F(LeaderSumTest, AddsInOrderOfHosts) {
  std::vector<float> own = {-1e30F};
  Add(own);
  const std::vector<LeaderItem> items = Items();
  LeaderSum sum(items);
  ASSERT_TRUE(sum.Help());
  EXPECT_EQ(sum.Pack({}, /*by_part=*/true), nullptr) << "one tensor stays where it is";
  const std::vector<MessageBytes> sums = {BytesOf({1e30F}), "", BytesOf({1})};
  ASSERT_TRUE(sum.AddOffered(sums, 1).ok());
  EXPECT_EQ(own, std::vector<float>{1});
}

// Two tensors of which neither is large alone, through one place.
TEST_F(LeaderSumTest, LargeTensorsTogetherAreCopiedByPartWhereThatIsPossible) {
  const size_t count = 40'000;
  for (const bool by_part : {false, true}) {
    op_.parts.clear();
    std::vector<float> first(count, 1), second(count, 2);
    Add(first);
    Add(second);
    const std::vector<LeaderItem> items = Items();
    LeaderSum sum(items);
    ASSERT_TRUE(sum.Help());
    std::vector<float> place;
    const auto room = [&](size_t bytes) {
      place.resize(bytes / sizeof(float));
      return reinterpret_cast<std::byte*>(place.data());
    };
    SumCopies* copies = sum.Pack(room, by_part);
    ASSERT_EQ(copies != nullptr, by_part);
    if (by_part) copies->Fill(count - 1, 2);
    EXPECT_EQ(place[count - 1], 1);
    EXPECT_EQ(place[count], 2);
    place[count - 1] = 3;
    place[count] = 4;
    if (by_part) copies->Deliver(count - 1, 2);
    sum.HandOut();
    EXPECT_EQ(first[count - 1], 3);
    EXPECT_EQ(second[0], 4);
    EXPECT_EQ(second[1], 2) << "what was not asked for is not touched, or as it was";
  }
}

TEST_F(LeaderSumTest, RefusesAPartOfAWrongLength) {
  std::vector<float> own = {2};
  Add(own);
  const std::vector<LeaderItem> items = Items();
  LeaderSum sum(items);
  ASSERT_TRUE(sum.Help());
  EXPECT_EQ(sum.Pack({}, /*by_part=*/true), nullptr) << "one tensor stays where it is";
  const std::vector<MessageBytes> sums = {BytesOf({1}), "", "abc"};
  EXPECT_EQ(sum.AddOffered(sums, 1).code(), Code::kInternal);
  EXPECT_EQ(own, std::vector<float>{2}) << "nothing is added";
}

}  // namespace
}  // namespace hvd
