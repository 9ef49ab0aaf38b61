#include "runtime/device/cuda/batch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <utility>

namespace hvd {
namespace {

using testing::HasSubstr;

BatchSpec Spec(DType from, DType to, double scale = 1.0) { return {from, to, scale}; }

TEST(BatchElementsOf, AreBytesWhereNothingChanges) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const Result<BatchElements> elements = BatchElementsOf(Spec(dtype, dtype));
    ASSERT_TRUE(elements.ok()) << NameOf(dtype);
    EXPECT_EQ(*elements, BatchElements{});
  }
}

TEST(BatchElementsOf, KnowEveryPairOfFloats) {
  const std::pair<DType, KernelElement> floats[] = {
      {DType::kFloat32, KernelElement::kFloat32},
      {DType::kFloat16, KernelElement::kFloat16},
      {DType::kBfloat16, KernelElement::kBfloat16},
      {DType::kFloat8E4m3, KernelElement::kFloat8E4m3},
      {DType::kFloat8E5m2, KernelElement::kFloat8E5m2},
  };
  for (const auto& [from, from_element] : floats) {
    for (const auto& [to, to_element] : floats) {
      const Result<BatchElements> elements = BatchElementsOf(Spec(from, to, 0.5));
      ASSERT_TRUE(elements.ok()) << NameOf(from) << " to " << NameOf(to);
      EXPECT_EQ(*elements, (BatchElements{from_element, to_element})) << NameOf(from);
    }
  }
  const Result<BatchElements> wide = BatchElementsOf(Spec(DType::kFloat64, DType::kFloat64, 0.5));
  ASSERT_TRUE(wide.ok());
  EXPECT_EQ(*wide, (BatchElements{KernelElement::kFloat64, KernelElement::kFloat64}));
}

TEST(BatchElementsOf, SayWhatAGpuDoesNotDo) {
  const Status scaled = BatchElementsOf(Spec(DType::kInt32, DType::kInt32, 0.5)).status();
  EXPECT_EQ(scaled.code(), Code::kUnsupported);
  EXPECT_THAT(scaled.message(), HasSubstr("int32 into int32 with a scale of 0.5"));
  EXPECT_FALSE(BatchElementsOf(Spec(DType::kFloat64, DType::kFloat32)).ok());
  EXPECT_FALSE(BatchElementsOf(Spec(DType::kFloat8E4m3, DType::kFloat64)).ok());
  EXPECT_FALSE(PlanBatch(Spec(DType::kBool, DType::kUint8), {}).ok());
}

TEST(PlanBatch, MakesOneLaunchOfHundredsOfTensors) {
  std::vector<BatchItem> items;
  for (uint64_t i = 0; i < 300; ++i) items.push_back({4096 * i, 1u << 30, 1000 + i});
  const auto launches = PlanBatch(Spec(DType::kFloat32, DType::kFloat16), items);
  ASSERT_TRUE(launches.ok());
  ASSERT_EQ(launches->size(), 1U);
  EXPECT_EQ(launches->front().segments.size(), 300U);
  EXPECT_EQ(launches->front().head.segments, 300U);
  EXPECT_EQ(launches->front().tiles, 300U);  // each fits into a tile
}

TEST(PlanBatch, LeavesOutWhatIsEmpty) {
  const std::vector<BatchItem> items = {{16, 32, 0}, {48, 64, 1}, {80, 96, 0}};
  const auto launches = PlanBatch(Spec(DType::kFloat32, DType::kFloat32, 2), items);
  ASSERT_TRUE(launches.ok());
  ASSERT_EQ(launches->size(), 1U);
  ASSERT_EQ(launches->front().segments.size(), 1U);
  EXPECT_EQ(launches->front().segments[0].from, 48U);
  EXPECT_TRUE(PlanBatch(Spec(DType::kInt8, DType::kInt8), {})->empty());
}

TEST(PlanBatch, CutsATensorThatIsTooLargeForOneGrid) {
  const uint64_t elements = uint64_t{1} << 45;
  const std::vector<BatchItem> items = {{0, uint64_t{1} << 50, elements}};
  const auto launches = PlanBatch(Spec(DType::kFloat16, DType::kFloat32), items);
  ASSERT_TRUE(launches.ok());
  ASSERT_GT(launches->size(), 1U);
  uint64_t sum = 0;
  for (const BatchLaunch& launch : *launches) {
    ASSERT_EQ(launch.segments.size(), 1U);
    EXPECT_LE(launch.tiles, 0x7fffffffU);
    EXPECT_EQ(launch.segments[0].from, sum * 2);
    EXPECT_EQ(launch.segments[0].to, (uint64_t{1} << 50) + sum * 4);
    sum += launch.segments[0].elements;
  }
  EXPECT_EQ(sum, elements);
}

// Whatever the items and the limits are: each element is moved once, from its place to its place.
TEST(PlanBatch, MovesEachElementOnce) {
  std::mt19937 random(18);
  for (int round = 0; round < 300; ++round) {
    const bool bytes = round % 2 == 0;
    const BatchSpec spec =
        bytes ? Spec(DType::kInt64, DType::kInt64) : Spec(DType::kFloat32, DType::kBfloat16);
    const uint64_t from_bytes = bytes ? 1 : 4, to_bytes = bytes ? 1 : 2;
    const BatchLimits limits = {.segments = static_cast<uint32_t>(1 + random() % 5),
                                .tiles = static_cast<uint32_t>(1 + random() % 7)};
    std::vector<BatchItem> items;
    for (uint64_t i = 0, count = random() % 20; i < count; ++i) {
      items.push_back({i << 40, (i << 40) + (uint64_t{1} << 39), random() % 60000});
    }
    const auto launches = PlanBatch(spec, items, limits);
    ASSERT_TRUE(launches.ok());
    std::vector<uint64_t> done(items.size(), 0);
    for (const BatchLaunch& launch : *launches) {
      ASSERT_LE(launch.segments.size(), limits.segments);
      ASSERT_LE(launch.tiles, limits.tiles);
      ASSERT_EQ(launch.head.segments, launch.segments.size());
      uint32_t tiles = 0;
      for (const BatchSegment& segment : launch.segments) {
        const uint64_t item = segment.from >> 40;
        ASSERT_EQ(segment.first_tile, tiles);
        ASSERT_EQ(segment.from, items[item].from + done[item] * from_bytes);
        ASSERT_EQ(segment.to, items[item].to + done[item] * to_bytes);
        ASSERT_GT(segment.elements, 0U);
        done[item] += segment.elements;
        tiles += static_cast<uint32_t>((segment.elements + launch.head.tile_elements - 1) /
                                       launch.head.tile_elements);
      }
      ASSERT_EQ(launch.tiles, tiles);
    }
    for (size_t i = 0; i < items.size(); ++i) {
      ASSERT_EQ(done[i], items[i].elements * (bytes ? 8 : 1)) << "round " << round;
    }
  }
}

TEST(BufferOffsets, BeginAtMultiplesOfSixteen) {
  const std::vector<DeviceTensor> tensors = {{0, 1}, {0, 8}, {0, 0}, {0, 9}};
  EXPECT_EQ(BufferOffsets(DType::kFloat16, tensors), (std::vector<uint64_t>{0, 16, 32, 32, 64}));
  EXPECT_EQ(BufferOffsets(DType::kFloat16, {}), std::vector<uint64_t>{0});
}

TEST(PackItems, GoThereAndUnpackItemsGoBack) {
  const std::vector<DeviceTensor> tensors = {{1000, 3}, {2000, 5}};
  const std::vector<uint64_t> offsets = BufferOffsets(DType::kFloat32, tensors);
  const std::vector<BatchItem> in = PackItems(tensors, 64000, offsets);
  const std::vector<BatchItem> out = UnpackItems(tensors, 64000, offsets);
  ASSERT_EQ(in.size(), 2U);
  EXPECT_EQ(in[1].from, 2000U);
  EXPECT_EQ(in[1].to, 64016U);
  EXPECT_EQ(out[1].from, 64016U);
  EXPECT_EQ(out[1].to, 2000U);
  EXPECT_EQ(out[1].elements, 5U);
}

}  // namespace
}  // namespace hvd
