// The kernels of Adasum, played by the processor, beside Adasum of host memory.
#include "runtime/device/cuda/adasum_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "runtime/device/adasum.h"
#include "runtime/device/cuda/adasum_plan.h"
#include "runtime/device/host_reduce.h"
#include "test/fakes/adasum_definition.h"
#include "test/fakes/cuda/play_kernels.h"

namespace hvd {
namespace {

using test::PlayAdasum;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr DType kTypes[] = {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64};

DeviceAddress AddressOfTest(const void* memory) { return reinterpret_cast<uint64_t>(memory); }

void Do(const AdasumStep& step) {
  const Result<std::vector<AdasumLaunch>> launches = PlanAdasumStep(step);
  ASSERT_TRUE(launches.ok()) << launches.status().message();
  for (const AdasumLaunch& launch : *launches) PlayAdasum(launch);
}

// Vectors of random numbers, `shift` bytes behind a multiple of 256.
class TestVectors {
 public:
  TestVectors(DType dtype, uint32_t count, uint64_t elements, size_t shift = 0)
      : stride_((elements * SizeOf(dtype) + 255) / 256 * 256), memory_(count * stride_ + 512) {
    std::byte* begin = memory_.data();
    begin += (256 - AddressOfTest(begin) % 256) % 256 + shift;
    std::mt19937 random(static_cast<uint32_t>(count + elements));
    std::normal_distribution<float> normal;
    for (uint32_t k = 0; k < count; ++k) {
      std::vector<float> wide(elements);
      for (float& value : wide) value = normal(random) + 0.1F * static_cast<float>(k);
      Put(dtype, wide, begin + k * stride_);
      inputs_.push_back(begin + k * stride_);
    }
    vectors_ = {dtype, AddressOfTest(begin), stride_, count, elements};
  }
  const DeviceVectors& vectors() const { return vectors_; }
  std::span<const void* const> inputs() const { return inputs_; }

 private:
  static void Put(DType dtype, const std::vector<float>& wide, std::byte* to) {
    if (wide.empty()) return;  // memcpy takes no null pointer
    if (dtype == DType::kFloat64) {
      const std::vector<double> wider(wide.begin(), wide.end());
      std::memcpy(to, wider.data(), wider.size() * sizeof(double));
    } else if (dtype == DType::kFloat32) {
      std::memcpy(to, wide.data(), wide.size() * sizeof(float));
    } else {
      NarrowRange(dtype, wide.data(), to, wide.size());
    }
  }

  uint64_t stride_;
  std::vector<std::byte> memory_;
  std::vector<const void*> inputs_;
  DeviceVectors vectors_;
};

std::vector<double> DotsOf(const DeviceVectors& vectors) {
  std::vector<double> scratch(AdasumScratchBytes(vectors.count) / sizeof(double), NAN);
  std::vector<double> products(DotProductCount(vectors.count), NAN);
  Do(AdasumDots{vectors, AddressOfTest(scratch.data()), AddressOfTest(products.data())});
  return products;
}

TEST(AdasumKernel, TakesTheDotProductsOfTheHost) {
  for (DType dtype : kTypes) {
    for (uint32_t count : {1U, 2U, 3U, 4U, 5U, 9U}) {
      for (uint64_t elements : {0, 1, 15, 16, 4099}) {
        for (size_t shift : {size_t{0}, SizeOf(dtype)}) {
          const TestVectors test(dtype, count, elements, shift);
          std::vector<double> expected(DotProductCount(count), 0.0);
          AddDotProducts(dtype, test.inputs(), 0, elements, expected);
          const std::vector<double> found = DotsOf(test.vectors());
          for (size_t i = 0; i < expected.size(); ++i) {
            ASSERT_NEAR(found[i], expected[i], 1e-12 * static_cast<double>(elements + 1))
                << NameOf(dtype) << ", " << count << " of " << elements << ", product " << i;
          }
        }
      }
    }
  }
}

// More elements than one block takes for each of the most blocks.
TEST(AdasumKernel, AddsUpManyChunks) {
  const TestVectors test(DType::kFloat32, 2, uint64_t{1} << 21);
  std::vector<double> expected(3, 0.0);
  AddDotProducts(DType::kFloat32, test.inputs(), 0, uint64_t{1} << 21, expected);
  const std::vector<double> found = DotsOf(test.vectors());
  for (size_t i = 0; i < 3; ++i) ASSERT_NEAR(found[i] / expected[i], 1, 1e-9) << i;
}

// Bit for bit: one text makes both.
TEST(AdasumKernel, WeighsAsTheHostDoes) {
  std::mt19937 random(18);
  for (uint32_t count = 1; count <= 17; ++count) {
    const TestVectors test(DType::kFloat64, count, 40);
    std::vector<double> products(DotProductCount(count), 0.0);
    AddDotProducts(DType::kFloat64, test.inputs(), 0, 40, products);
    std::vector<double> parts, sums(products.size()), weights(count, NAN);
    std::vector<double> total(products.size(), 0.0);
    for (int part = 0; part < 3; ++part) {
      for (size_t i = 0; i < products.size(); ++i) {
        parts.push_back(products[i] * (part + 1));
        total[i] += parts.back();
      }
    }
    Do(AdasumWeighing{.parts = AddressOfTest(parts.data()),
                      .part_stride = products.size() * sizeof(double),
                      .part_count = 3,
                      .vectors = count,
                      .scale = 0.75,
                      .products = AddressOfTest(sums.data()),
                      .weights = AddressOfTest(weights.data())});
    EXPECT_EQ(sums, total);
    std::vector<double> expected = AdasumWeights(total, count);
    for (double& weight : expected) weight *= 0.75;
    EXPECT_EQ(weights, expected) << count;
  }
}

TEST(AdasumKernel, AddsUpWithTheBitsOfTheHost) {
  for (DType dtype : kTypes) {
    for (uint32_t count : {1U, 2U, 5U}) {
      for (uint64_t elements : {1, 7, 8, 9, 4099}) {
        for (size_t shift : {size_t{0}, SizeOf(dtype)}) {
          const TestVectors test(dtype, count, elements, shift);
          std::vector<double> weights;
          for (uint32_t k = 0; k < count; ++k) weights.push_back(0.3 + k);
          std::vector<std::byte> found(elements * SizeOf(dtype) + 512, std::byte{0xab});
          std::vector<std::byte> expected = found;
          std::byte* output = found.data() + shift;
          void* wanted = expected.data() + shift;
          WeightedSumRange(dtype, test.inputs(), weights, {&wanted, 1}, 0, elements);
          Do(AdasumSum{test.vectors(), AddressOfTest(weights.data()), AddressOfTest(output)});
          ASSERT_TRUE(found == expected) << NameOf(dtype) << ", " << count << " of " << elements;
        }
      }
    }
  }
}

// No result depends on the order of the blocks, and a second run gives the same bits.
TEST(AdasumKernel, GivesTheSameForAnyOrderOfBlocks) {
  const TestVectors test(DType::kFloat16, 6, 70000);
  std::vector<double> scratch(AdasumScratchBytes(6) / sizeof(double), NAN);
  std::vector<double> products(DotProductCount(6), NAN);
  const auto launches = PlanAdasumStep(
      AdasumDots{test.vectors(), AddressOfTest(scratch.data()), AddressOfTest(products.data())});
  ASSERT_TRUE(launches.ok());
  ASSERT_THAT(*launches, SizeIs(2));
  const AdasumLaunch& dots = launches->front();
  ASSERT_GT(dots.blocks_x, 4U);
  ASSERT_EQ(dots.blocks_y, 3U) << "of two groups of vectors";
  for (unsigned block = dots.blocks_x * dots.blocks_y; block-- > 0;)
    test::PlayAdasumDots(dots.arguments, block / 3, block % 3, kKernelThreads);
  PlayAdasum(launches->back());
  EXPECT_EQ(products, DotsOf(test.vectors()));
}

TEST(AdasumKernel, PairsEachGroupWithEachOnce) {
  std::vector<std::pair<unsigned, unsigned>> pairs;
  for (unsigned tile = 0; tile < 6; ++tile) {
    const adasum::GroupPair pair = adasum::GroupPairOf(9, tile);
    pairs.emplace_back(pair.row, pair.column);
  }
  using testing::Pair;
  EXPECT_THAT(pairs,
              ElementsAre(Pair(0, 0), Pair(0, 1), Pair(0, 2), Pair(1, 1), Pair(1, 2), Pair(2, 2)));
}

TEST(AdasumPlan, RefusesTypesWithoutAnAdasum) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(PlanAdasumStep(AdasumSum{.vectors = {.dtype = dtype}}).ok(), CanAdasum(dtype));
    EXPECT_EQ(PlanAdasumStep(AdasumDots{.vectors = {.dtype = dtype}}).ok(), CanAdasum(dtype));
  }
  EXPECT_THAT(PlanAdasumStep(AdasumSum{.vectors = {.dtype = DType::kInt32}}).status().message(),
              HasSubstr("there is no Adasum of int32"));
}

TEST(AdasumPlan, LaunchesNothingForNothing) {
  EXPECT_THAT(*PlanAdasumStep(AdasumSum{.vectors = {.count = 3}}), SizeIs(0));
  const auto dots = PlanAdasumStep(AdasumDots{.vectors = {.count = 3}});
  ASSERT_THAT(*dots, SizeIs(1)) << "the products are 0 and are stored";
  EXPECT_EQ(dots->front().kernel, AdasumKernel::kFold);
}

// Whatever the length: blocks share all elements, and their products fit into the scratch.
TEST(AdasumPlan, ChunksHaveAllElements) {
  for (uint64_t elements : {uint64_t{1}, uint64_t{4096}, uint64_t{4097}, uint64_t{1} << 20,
                            (uint64_t{1} << 20) + 1, (uint64_t{1} << 40) + 77}) {
    const auto launches = PlanAdasumStep(AdasumDots{.vectors = {.count = 2, .elements = elements}});
    ASSERT_TRUE(launches.ok());
    const AdasumArguments& arguments = launches->front().arguments;
    EXPECT_EQ(arguments.chunk_elements % 16, 0U);
    EXPECT_GE(arguments.chunks * arguments.chunk_elements, elements);
    EXPECT_LT((arguments.chunks - 1) * arguments.chunk_elements, elements);
    EXPECT_LE(arguments.chunks * DotProductCount(2) * sizeof(double), AdasumScratchBytes(2));
  }
}

}  // namespace
}  // namespace hvd
