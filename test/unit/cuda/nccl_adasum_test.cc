// Adasum over a fake NCCL: the plans, and their results beside those of the host.
#include "runtime/backends/nccl/nccl_adasum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "runtime/backends/nccl/nccl_operation.h"
#include "test/fakes/adasum_definition.h"
#include "test/unit/cuda/nccl_world.h"

namespace hvd {
namespace {

using test::NcclWorld;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

uint64_t BytesSent(const NcclPlan& plan) {
  uint64_t bytes = 0;
  for (const NcclCall& call : plan.calls)
    if (call.kind == NcclCallKind::kSend) bytes += call.count;
  return bytes;
}

TEST(CheckAdasum, NamesWhatIsLacking) {
  EXPECT_TRUE(CheckAdasum(DType::kBfloat16, 64).ok());
  EXPECT_THAT(CheckAdasum(DType::kFloat8E4m3, 2).message(), HasSubstr("no Adasum of float8_e4m3"));
  EXPECT_THAT(CheckAdasum(DType::kFloat32, 65).message(),
              HasSubstr("over up to 64 ranks, and these are 65"));
}

TEST(PlanAdasum, TakesSmallTensorsTogetherAndLargeOnesAlone) {
  const NcclAdasum adasum{.size = 4, .index = 1};
  const std::vector<NcclTensor> small(100, {1 << 20, 1 << 20, 1000});
  const uint64_t bytes = AdasumBytes(adasum, small);
  EXPECT_THAT(PlanAdasum(adasum, small, {1 << 30, bytes}).then, SizeIs(3)) << "one round";
  // 40 MiB each.
  const std::vector<NcclTensor> large(3, {1 << 20, 1 << 20, 10 << 20});
  EXPECT_THAT(PlanAdasum(adasum, large, {}).then, SizeIs(9)) << "three rounds";
  EXPECT_EQ(AdasumBytes(adasum, large), AdasumBytes(adasum, std::span(large).first(1)));
  EXPECT_LT(AdasumBytes(adasum, large), uint64_t{42} << 20) << "as much as a tensor has";
  EXPECT_THAT(PlanAdasum(adasum, {}, {}).then, IsEmpty());
}

// All members make the same calls, and send each byte of a tensor once.
TEST(PlanAdasum, HasTheSameCallsOnAllMembers) {
  const std::vector<NcclTensor> tensors = {{0, 0, 1}, {0, 0, 0}, {0, 0, 641}, {0, 0, 5000}};
  std::vector<NcclPlan> plans;
  for (uint32_t m = 0; m < 5; ++m)
    plans.push_back(PlanAdasum({.dtype = DType::kFloat16, .size = 5, .index = m}, tensors, {}));
  std::vector<uint64_t> received(5, 0), sent(5, 0);
  for (uint32_t m = 0; m < 5; ++m) {
    ASSERT_THAT(plans[m].then, SizeIs(3));
    EXPECT_EQ(BytesSent(plans[m].then[0]), 2U * (1 + 641 + 5000));
    for (const NcclCall& call : plans[m].then[0].calls) {
      const auto peer = static_cast<size_t>(call.peer);
      if (call.kind == NcclCallKind::kSend) sent[peer] += call.count;
      if (call.kind == NcclCallKind::kRecv) received[m] += call.count;
    }
    for (size_t step : {1, 2}) {
      const auto &mine = plans[m].then[step].calls, &first = plans[0].then[step].calls;
      ASSERT_EQ(mine.size(), first.size());
      for (size_t i = 0; i < mine.size(); ++i) {
        EXPECT_EQ(mine[i].kind, first[i].kind);
        EXPECT_EQ(mine[i].count, first[i].count);
        EXPECT_EQ(mine[i].peer, first[i].peer);
      }
    }
  }
  EXPECT_EQ(sent, received);
}

class NcclAdasumTest : public testing::TestWithParam<int> {
 protected:
  static constexpr uint32_t kRanks = 3;
  static constexpr uint64_t kSizes[] = {5, 0, 700, 192};

  void SetUp() override {
    world_.Start();
    std::mt19937 random(18);
    std::normal_distribution<float> normal;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      for (uint64_t elements : kSizes) {
        const uint64_t memory = world_.cuda.MakeMemory(elements * sizeof(float) + 1);
        auto* values = reinterpret_cast<float*>(memory);
        for (uint64_t i = 0; i < elements; ++i) values[i] = normal(random);
        tensors_[rank].push_back({memory, memory, elements});
      }
    }
  }
  NcclPlan PlanOf(uint32_t rank) {
    const NcclAdasum adasum{.scale = 2, .size = kRanks, .index = rank};
    const uint64_t bytes = AdasumBytes(adasum, tensors_[rank]);
    return PlanAdasum(adasum, tensors_[rank], {world_.cuda.MakeMemory(bytes), bytes});
  }
  std::vector<double> ValuesAt(uint32_t rank, size_t tensor) const {
    const auto* values = reinterpret_cast<const float*>(tensors_[rank][tensor].from);
    return {values, values + kSizes[tensor]};
  }

  NcclWorld world_{kRanks, 23007, GetParam()};
  std::vector<NcclTensor> tensors_[kRanks];
};
INSTANTIATE_TEST_SUITE_P(AnswersOfNccl, NcclAdasumTest, testing::Values(0, 2));

TEST_P(NcclAdasumTest, CombinesEachTensorByItself) {
  std::vector<std::vector<double>> expected;
  for (size_t tensor = 0; tensor < std::size(kSizes); ++tensor) {
    std::vector<std::vector<double>> inputs;
    for (uint32_t rank = 0; rank < kRanks; ++rank) inputs.push_back(ValuesAt(rank, tensor));
    expected.push_back(test::AdasumOf(inputs));
  }
  std::vector<std::unique_ptr<NcclOperation>> operations;
  for (uint32_t rank = 0; rank < kRanks; ++rank)
    operations.push_back(
        std::make_unique<NcclOperation>(PlanOf(rank), *world_.comms[rank], *world_.devices[rank]));
  for (int round = 0; round <= 3 * (GetParam() + 1); ++round) {
    for (auto& operation : operations) ASSERT_TRUE(operation->Advance().ok());
    world_.cuda.Run();  // what follows the calls too early would be done too early
  }
  for (auto& operation : operations) EXPECT_TRUE(*operation->Advance());
  ASSERT_TRUE(world_.cuda.Run());
  for (size_t tensor = 0; tensor < std::size(kSizes); ++tensor) {
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      const std::vector<double> found = ValuesAt(rank, tensor);
      EXPECT_EQ(found, ValuesAt(0, tensor)) << "the same bits on all members";
      for (size_t i = 0; i < found.size(); ++i)
        ASSERT_NEAR(found[i], 2 * expected[tensor][i], 1e-5) << tensor << ", " << i;
    }
  }
  EXPECT_EQ(world_.cuda.Waits(), 0);
  world_.ExpectClean();
}

// An error of a later step is the operation's, and nothing is given after it.
TEST(NcclAdasumErrors, OfALaterStepIsASentence) {
  for (const char* symbol : {"ncclAllGather", "ncclBroadcast", "ncclRecv"}) {
    NcclWorld world(2);  // the second member never comes
    world.Start();
    const uint64_t memory = world.cuda.MakeMemory(4000);
    const NcclTensor tensors[] = {{memory, memory, 100}};
    const NcclAdasum adasum{.size = 2};
    const uint64_t bytes = AdasumBytes(adasum, tensors);
    NcclOperation operation(PlanAdasum(adasum, tensors, {world.cuda.MakeMemory(bytes), bytes}),
                            *world.comms[0], *world.devices[0]);
    world.nccl.Fail(symbol, kNcclInternalError);
    const Result<bool> given = operation.Advance();
    EXPECT_THAT(given.status().message(), HasSubstr(std::string(symbol) + " answered"));
    for (auto& comm : world.comms) EXPECT_TRUE(comm->Abort(given.status()).ok());
    world.cuda.Run();
    world.ExpectClean();
  }
}

}  // namespace
}  // namespace hvd
