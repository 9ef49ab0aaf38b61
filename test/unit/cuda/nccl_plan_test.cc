#include "runtime/backends/nccl/nccl_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/device/host_reduce.h"
#include "test/fakes/element_values.h"

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr NcclAbilities kNewest{.version = 23007, .compute_capability = 90};
constexpr double kThird = 1.0 / 3.0;

struct WayRow {
  NcclReduction reduction;
  NcclDataType type;
  NcclReduceOp op;
  double factor;  // of the pre-multiplied sum; 0: none
  double before, after;
};

TEST(NcclReductionSteps, PlacesEachFactor) {
  using enum ReduceOp;
  using enum DType;
  const WayRow table[] = {
      {{kSum, kFloat32}, kNcclFloat32, kNcclSum, 0, 1, 1},
      {{kAverage, kFloat32, 1, 1, 4, 4}, kNcclFloat32, kNcclAverage, 0, 1, 1},
      {{kAverage, kFloat32, 1, 1, 1, 1}, kNcclFloat32, kNcclSum, 0, 1, 1},
      {{kSum, kFloat32, kThird, 1, 4, 4}, kNcclFloat32, kNcclSum, kThird, 1, 1},
      {{kSum, kFloat32, 1, 0.25, 4, 4}, kNcclFloat32, kNcclSum, 0.25, 1, 1},
      {{kSum, kFloat32, 4, 0.25, 4, 4}, kNcclFloat32, kNcclSum, 0, 1, 1},
      {{kAverage, kFloat64, 3, 1, 4, 4}, kNcclFloat64, kNcclSum, 0.75, 1, 1},
      // Over those that have not joined.
      {{kActiveAverage, kFloat32, 1, 1, 4, 2}, kNcclFloat32, kNcclSum, 0.5, 1, 1},
      {{kActiveAverage, kFloat32, 1, 1, 4, 4}, kNcclFloat32, kNcclAverage, 0, 1, 1},
      // Half types: NCCL multiplies by what the type has, the batched kernel by the rest.
      {{kAverage, kFloat16, 1, 1, 4, 4}, kNcclFloat16, kNcclAverage, 0, 1, 1},
      {{kSum, kFloat16, 0.125, 8, 4, 4}, kNcclFloat16, kNcclSum, 0.125, 1, 8},
      {{kSum, kFloat16, kThird, 1, 4, 4}, kNcclFloat16, kNcclSum, 0, kThird, 1},
      {{kAverage, kBfloat16, 2, 1, 4, 4}, kNcclBfloat16, kNcclSum, 0.5, 1, 1},
      {{kActiveAverage, kBfloat16, 1, 1, 4, 3}, kNcclBfloat16, kNcclSum, 0, kThird, 1},
      // A result that is no sum is scaled by the batched kernel.
      {{kMin, kFloat32, 2, 3, 4, 4}, kNcclFloat32, kNcclMin, 0, 2, 3},
      {{kMax, kFloat64}, kNcclFloat64, kNcclMax, 0, 1, 1},
      {{kProduct, kFloat16}, kNcclFloat16, kNcclProduct, 0, 1, 1},
      // Whole numbers and truth values.
      {{kSum, kUint8}, kNcclUint8, kNcclSum, 0, 1, 1},
      {{kAverage, kInt32, 1, 1, 1, 1}, kNcclInt32, kNcclSum, 0, 1, 1},
      {{kMax, kInt8}, kNcclInt8, kNcclMax, 0, 1, 1},
      {{kProduct, kInt64}, kNcclInt64, kNcclProduct, 0, 1, 1},
      {{kSum, kBool}, kNcclUint8, kNcclMax, 0, 1, 1},
      {{kMax, kBool}, kNcclUint8, kNcclMax, 0, 1, 1},
      {{kMin, kBool}, kNcclUint8, kNcclMin, 0, 1, 1},
      {{kProduct, kBool}, kNcclUint8, kNcclMin, 0, 1, 1},
      {{kSum, kFloat8E4m3}, kNcclFloat8E4m3, kNcclSum, 0, 1, 1},
      {{kAverage, kFloat8E5m2, 1, 1, 4, 4}, kNcclFloat8E5m2, kNcclAverage, 0, 1, 1},
      // The batched kernel scales float8.
      {{kSum, kFloat8E4m3, 2, 3, 4, 4}, kNcclFloat8E4m3, kNcclSum, 0, 2, 3},
      {{kAverage, kFloat8E5m2, 2, 1, 4, 4}, kNcclFloat8E5m2, kNcclSum, 0, 0.5, 1},
      {{kActiveAverage, kFloat8E5m2, 1, 1, 4, 2}, kNcclFloat8E5m2, kNcclSum, 0, 0.5, 1},
  };
  for (const WayRow& row : table) {
    const Result<NcclReductionSteps> way = StepsOfReduction(row.reduction, kNewest);
    ASSERT_TRUE(way.ok()) << way.status().message();
    const auto line = &row - table;
    EXPECT_EQ(way->type, row.type) << line;
    EXPECT_EQ(way->op, row.op) << line;
    EXPECT_DOUBLE_EQ(way->pre_multiply.value_or(0), row.factor) << line;
    EXPECT_DOUBLE_EQ(way->before, row.before) << line;
    EXPECT_DOUBLE_EQ(way->after, row.after) << line;
  }
}

TEST(NcclReductionSteps, RefusesInOneSentence) {
  using enum ReduceOp;
  using enum DType;
  const struct {
    NcclReduction reduction;
    NcclAbilities abilities;
    const char* words;
  } table[] = {
      {{kAdasum, kFloat32}, kNewest, "NCCL has no reduction for Adasum"},
      {{kSum, kInt16}, kNewest, "NCCL does not reduce int16: convert it to int32"},
      {{kMax, kUint16}, kNewest, "NCCL does not reduce uint16"},
      {{kSum, kInt32, 2}, kNewest, "a GPU does not scale int32"},
      {{kSum, kBool, 1, 2}, kNewest, "a GPU does not scale bool"},
      {{kAverage, kBool, 1, 1, 2, 2}, kNewest, "there is no average of bool"},
      {{kAverage, kUint8, 1, 1, 2, 2}, kNewest, "NCCL adds uint8 in uint8, where the sum of an"},
      {{kActiveAverage, kInt64, 1, 1, 3, 2}, kNewest, "NCCL adds int64 in int64"},
      {{kSum, kFloat8E5m2}, {22402, 90}, "NCCL 2.24.2 does not reduce float8_e5m2: install 2.24.3"},
      {{kSum, kFloat8E5m2}, {22403, 89}, "on GPUs from sm_90 on, and a member has sm_89"},
  };
  for (const auto& row : table) {
    const Status status = StepsOfReduction(row.reduction, row.abilities).status();
    EXPECT_EQ(status.code(), Code::kUnsupported);
    EXPECT_THAT(status.message(), HasSubstr(row.words));
  }
}

// Every number of the half types, and what lies beside them.
TEST(NcclReductionSteps, KnowsWhatATypeHasExactly) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16}) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const auto pattern = static_cast<uint16_t>(bits);
      const uint32_t exponent = dtype == DType::kFloat16 ? bits >> 10 & 0x1f : bits >> 7 & 0xff;
      const uint32_t most = dtype == DType::kFloat16 ? 0x1f : 0xff;
      if (exponent == 0 || exponent == most) continue;
      const double value = test::Read(dtype, reinterpret_cast<const std::byte*>(&pattern));
      ASSERT_TRUE(HasExactly(dtype, value)) << value;
      ASSERT_FALSE(HasExactly(dtype, value * (1 + 0x1p-14))) << value;
      const std::array<std::byte, 8> bytes = ScalarBytes(dtype, value);
      ASSERT_EQ(test::Read(dtype, bytes.data()), value);
    }
  }
  EXPECT_TRUE(HasExactly(DType::kFloat16, 0));
  EXPECT_FALSE(HasExactly(DType::kFloat16, 65536));
  EXPECT_FALSE(HasExactly(DType::kFloat16, 0x1p-15));
  EXPECT_FALSE(HasExactly(DType::kBfloat16, HUGE_VAL));
  EXPECT_TRUE(HasExactly(DType::kFloat32, 0.5));
  EXPECT_FALSE(HasExactly(DType::kFloat32, 0.1));
  EXPECT_TRUE(HasExactly(DType::kFloat64, 0.1));
  EXPECT_EQ(test::Read(DType::kFloat16, ScalarBytes(DType::kFloat16, 0).data()), 0);
  EXPECT_EQ(test::Read(DType::kFloat64, ScalarBytes(DType::kFloat64, 0.1).data()), 0.1);
  EXPECT_EQ(test::Read(DType::kFloat32, ScalarBytes(DType::kFloat32, 0.1).data()), 0.1F);
}

// ---- allreduce

constexpr uint64_t kBuffer = 0x10000;

Result<NcclPlan> Allreduce(const NcclReduction& reduction, const std::vector<NcclTensor>& tensors,
                           uint64_t below = 64, uint64_t buffer = 4096) {
  return PlanAllreduce(reduction, kNewest, tensors, {{kBuffer, buffer}, below});
}

std::vector<uint64_t> Targets(const std::vector<BatchItem>& items) {
  std::vector<uint64_t> targets;
  for (const BatchItem& item : items) targets.push_back(item.to);
  return targets;
}

TEST(NcclPlanAllreduce, PacksSmallTensorsAndLeavesLargeOnes) {
  // 4, 1000, 5 and 15 elements of 4 bytes; 16 are 64 bytes.
  const Result<NcclPlan> plan =
      Allreduce({}, {{100, 200, 4}, {300, 400, 1000}, {500, 600, 5}, {700, 800, 15}});
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(Targets(plan->before), ElementsAre(kBuffer, kBuffer + 16, kBuffer + 48));
  EXPECT_THAT(Targets(plan->after), ElementsAre(200, 600, 800));
  EXPECT_THAT(plan->calls,
              ElementsAre(NcclCall{NcclCallKind::kAllReduce, 300, 400, 1000, kNcclFloat32},
                          NcclCall{NcclCallKind::kAllReduce, kBuffer, kBuffer, 28, kNcclFloat32}));
  EXPECT_EQ(plan->before_spec.scale, 1.0);
  EXPECT_FALSE(plan->pre_multiply.has_value());
}

TEST(NcclPlanAllreduce, TheThresholdAndTheBufferDecide) {
  const std::vector<NcclTensor> three = {{16, 16, 16}, {32, 32, 15}, {48, 48, 15}};
  EXPECT_EQ(Allreduce({}, three)->calls.size(), 2U);           // 64 bytes are not below 64
  EXPECT_EQ(Allreduce({}, three, 65)->calls.size(), 1U);       // all are packed
  EXPECT_EQ(Allreduce({}, three, 0)->calls.size(), 3U);        // none is
  EXPECT_EQ(Allreduce({}, three, 65, 128)->calls.size(), 2U);  // the third has no space
  EXPECT_EQ(Allreduce({}, three, 65, 64)->calls.size(), 3U);   // one alone gains nothing
  EXPECT_EQ(Allreduce({}, three, 65, 0)->calls.size(), 3U);
  EXPECT_THAT(Allreduce({}, {{16, 16, 0}})->calls, IsEmpty());
  EXPECT_THAT(Allreduce({}, {})->calls, IsEmpty());
}

TEST(NcclPlanAllreduce, ScalesOnTheWayInAndOut) {
  const NcclReduction reduction{ReduceOp::kMin, DType::kFloat32, 2, 3};
  const Result<NcclPlan> plan =
      Allreduce(reduction, {{100, 200, 1000}, {300, 400, 4}, {500, 600, 4}});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->before_spec.scale, 2);
  EXPECT_EQ(plan->after_spec.scale, 3);
  // The large one is scaled from its input to its output, and stays there.
  EXPECT_THAT(Targets(plan->before), ElementsAre(200, kBuffer, kBuffer + 16));
  EXPECT_THAT(Targets(plan->after), ElementsAre(200, 400, 600));
  EXPECT_EQ(plan->calls[0].from, 200U);
  const Result<NcclPlan> multiplied =
      Allreduce({ReduceOp::kSum, DType::kFloat32, kThird}, {{100, 200, 1000}});
  EXPECT_THAT(multiplied->before, IsEmpty());
  EXPECT_EQ(multiplied->calls[0].op, kNcclPreMultiplied);
  EXPECT_EQ(multiplied->pre_multiply->factor, kThird);
}

// ---- the others

TEST(NcclPlan, BroadcastsBytes) {
  EXPECT_THAT(PlanBroadcast(DType::kInt16, {10, 20, 5}, 2).calls,
              ElementsAre(NcclCall{NcclCallKind::kBroadcast, 10, 20, 10, kNcclUint8, kNcclSum, 2}));
  EXPECT_THAT(PlanBroadcast(DType::kInt16, {10, 20, 0}, 2).calls, IsEmpty());
}

TEST(NcclPlan, GathersEvenPartsAtOnceAndOthersByBroadcasts) {
  const std::vector<uint64_t> even = {3, 3}, uneven = {2, 0, 3}, none = {0, 0};
  EXPECT_THAT(PlanAllgather(DType::kFloat32, 10, 100, even, 1).calls,
              ElementsAre(NcclCall{NcclCallKind::kAllGather, 10, 100, 12}));
  EXPECT_THAT(
      PlanAllgather(DType::kFloat32, 10, 100, uneven, 2).calls,
      ElementsAre(NcclCall{NcclCallKind::kBroadcast, 0, 100, 8, kNcclUint8, kNcclSum, 0},
                  NcclCall{NcclCallKind::kBroadcast, 10, 108, 12, kNcclUint8, kNcclSum, 2}));
  EXPECT_THAT(PlanAllgather(DType::kFloat32, 10, 100, none, 0).calls, IsEmpty());
}

TEST(NcclPlan, ScattersEvenPartsAtOnceAndOthersByReductions) {
  const std::vector<uint64_t> even = {3, 3}, uneven = {2, 0, 3};
  const NcclReduction sum;
  EXPECT_THAT(PlanReducescatter(sum, kNewest, 10, 100, even, 1, {})->calls,
              ElementsAre(NcclCall{NcclCallKind::kReduceScatter, 10, 100, 3, kNcclFloat32}));
  EXPECT_THAT(PlanReducescatter(sum, kNewest, 10, 100, uneven, 2, {})->calls,
              ElementsAre(NcclCall{NcclCallKind::kReduce, 10, 0, 2, kNcclFloat32, kNcclSum, 0},
                          NcclCall{NcclCallKind::kReduce, 18, 100, 3, kNcclFloat32, kNcclSum, 2}));
  const NcclReduction scaled{ReduceOp::kMax, DType::kFloat32, 2, 3};
  const Result<NcclPlan> plan = PlanReducescatter(scaled, kNewest, 10, 100, even, 1, {kBuffer, 24});
  EXPECT_THAT(Targets(plan->before), ElementsAre(kBuffer));
  EXPECT_EQ(plan->calls[0].from, kBuffer);
  EXPECT_THAT(Targets(plan->after), ElementsAre(100));
  const Status small = PlanReducescatter(scaled, kNewest, 10, 100, even, 1, {kBuffer, 23}).status();
  EXPECT_EQ(small.code(), Code::kOutOfMemory);
  EXPECT_THAT(small.message(), HasSubstr("needs 24 bytes of the fusion buffer, which has 23"));
}

TEST(NcclPlan, SendsToAllAndLeavesOutWhatIsEmpty) {
  const std::vector<uint64_t> sent = {1, 0, 2}, received = {1, 4, 0};
  EXPECT_THAT(PlanAlltoall(DType::kInt64, 1000, 2000, sent, received).calls,
              ElementsAre(NcclCall{NcclCallKind::kSend, 1000, 0, 8, kNcclUint8, kNcclSum, 0},
                          NcclCall{NcclCallKind::kRecv, 0, 2000, 8, kNcclUint8, kNcclSum, 0},
                          NcclCall{NcclCallKind::kRecv, 0, 2008, 32, kNcclUint8, kNcclSum, 1},
                          NcclCall{NcclCallKind::kSend, 1008, 0, 16, kNcclUint8, kNcclSum, 2}));
}

}  // namespace
}  // namespace hvd
