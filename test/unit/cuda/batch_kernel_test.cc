// The kernels' arithmetic, run by the processor, beside that of host memory.
#include "runtime/device/cuda/batch_kernel.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "runtime/device/cuda/batch_plan.h"
#include "runtime/device/host_reduce.h"

namespace hvd {
namespace {

// The work of a grid, thread after thread.
void Play(const BatchLaunch& launch, unsigned threads) {
  for (unsigned tile = 0; tile < launch.tiles; ++tile) {
    for (unsigned thread = 0; thread < threads; ++thread) {
      RunBatch(launch.head, launch.segments.data(), tile, thread, threads);
    }
  }
}

void Move(const BatchSpec& spec, const void* from, void* to, uint64_t elements,
          unsigned threads = kKernelThreads) {
  const std::vector<BatchItem> items = {
      {reinterpret_cast<uint64_t>(from), reinterpret_cast<uint64_t>(to), elements}};
  const auto launches = PlanBatch(spec, items);
  ASSERT_TRUE(launches.ok());
  for (const BatchLaunch& launch : *launches) Play(launch, threads);
}

bool SameFloat(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

// Every value of a narrow type that there is.
template <typename T, DType kType>
void WidensEveryValue() {
  std::vector<T> values(size_t{1} << 8 * sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(i);
  std::vector<float> expected(values.size()), found(values.size());
  const void* input = values.data();
  WideReduceRange({.dtype = kType}, {&input, 1}, expected.data(), 0, values.size());
  Move({kType, DType::kFloat32, 1.0}, values.data(), found.data(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_TRUE(SameFloat(found[i], expected[i])) << i << ": " << found[i] << ", " << expected[i];
  }
}

TEST(BatchKernel, WidensEveryFloat16) { WidensEveryValue<uint16_t, DType::kFloat16>(); }
TEST(BatchKernel, WidensEveryBfloat16) { WidensEveryValue<uint16_t, DType::kBfloat16>(); }
TEST(BatchKernel, WidensEveryFloat8E4m3) { WidensEveryValue<uint8_t, DType::kFloat8E4m3>(); }
TEST(BatchKernel, WidensEveryFloat8E5m2) { WidensEveryValue<uint8_t, DType::kFloat8E5m2>(); }

// Floats of every exponent, those around the middle between two narrow ones, and special ones.
std::vector<float> ManyFloats() {
  std::vector<float> floats = {0.0F,          -0.0F,        INFINITY,     -INFINITY, NAN,
                               -NAN,          65504.0F,     65519.99F,    65520.0F,  5.9604645e-8F,
                               2.9802322e-8F, 2.980233e-8F, 6.1035156e-5F};
  // Around the middle between neighbours of float8, and around the least numbers that are too
  // large for them.
  for (const float exact : {464.0F, 480.0F, 61440.0F, 65536.0F, 17.0F, 19.0F, 0x1p-9F, 0x1p-10F,
                            0x3p-10F, 0x1p-16F, 0x1p-17F, 0x3p-17F}) {
    for (const uint32_t step : {0U, 1U, 2U}) {
      floats.push_back(std::bit_cast<float>(std::bit_cast<uint32_t>(exact) - 1 + step));
      floats.push_back(-floats.back());
    }
  }
  std::mt19937 random(18);
  for (uint32_t high = 0; high < 0x10000; ++high) {
    for (uint32_t low : {0x0000U, 0x0fffU, 0x1000U, 0x1001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      floats.push_back(std::bit_cast<float>(high << 16 | low));
    }
    floats.push_back(std::bit_cast<float>(high << 16 | static_cast<uint32_t>(random() & 0xffffU)));
  }
  return floats;
}

// Whether two narrow values are the same, or both are NaN.
template <DType kType>
bool SameNarrow(uint32_t a, uint32_t b) {
  const uint32_t sign = SizeOf(kType) == 2 ? 0x8000 : 0x80;
  const uint32_t most = kType == DType::kFloat16      ? 0x7c00
                        : kType == DType::kBfloat16   ? 0x7f80
                        : kType == DType::kFloat8E4m3 ? 0x7e
                                                      : 0x7c;
  return a == b || ((a & ~sign) > most && (b & ~sign) > most);
}

template <typename T, DType kType>
void Narrows() {
  const std::vector<float> floats = ManyFloats();
  std::vector<T> expected(floats.size()), found(floats.size());
  NarrowRange(kType, floats.data(), expected.data(), floats.size());
  Move({DType::kFloat32, kType, 1.0}, floats.data(), found.data(), floats.size());
  for (size_t i = 0; i < floats.size(); ++i) {
    ASSERT_TRUE(SameNarrow<kType>(found[i], expected[i]))
        << floats[i] << ": " << uint32_t{found[i]} << ", " << uint32_t{expected[i]};
  }
}

TEST(BatchKernel, RoundsToFloat16AsTheHostDoes) { Narrows<uint16_t, DType::kFloat16>(); }
TEST(BatchKernel, RoundsToBfloat16AsTheHostDoes) { Narrows<uint16_t, DType::kBfloat16>(); }
TEST(BatchKernel, RoundsToFloat8E4m3AsTheHostDoes) { Narrows<uint8_t, DType::kFloat8E4m3>(); }
TEST(BatchKernel, RoundsToFloat8E5m2AsTheHostDoes) { Narrows<uint8_t, DType::kFloat8E5m2>(); }

// A scaled copy is what a reduction of one input with a prescale makes.
template <typename T, DType kType>
void ScalesAsTheHostDoes() {
  std::mt19937_64 random(18);
  for (size_t elements : {size_t{1}, size_t{7}, size_t{4096}, size_t{4103}, size_t{30001}}) {
    for (size_t offset : {size_t{0}, size_t{1}, size_t{8}}) {  // in elements: aligned or not
      std::vector<T> input(elements + offset + 1), found(elements + offset + 1), expected(input);
      for (T& value : input) {
        // Without NaN, of which the bits may differ: the exponent is cut.
        const uint64_t bits = random() & (sizeof(T) == 1 ? 0xbfU : 0xbfffbfffbfffbfffU);
        std::memcpy(&value, &bits, sizeof(T));
      }
      found = expected = input;
      const void* in = input.data() + offset;
      void* out = expected.data() + offset;
      ReduceRange({.dtype = kType, .prescale = 0.3}, {&in, 1}, {&out, 1}, 0, elements);
      Move({kType, kType, 0.3}, input.data() + offset, found.data() + offset, elements);
      ASSERT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(T)), 0)
          << NameOf(kType) << ", " << elements << " elements from " << offset;
    }
  }
}

TEST(BatchKernel, ScalesFloat32AsTheHostDoes) { ScalesAsTheHostDoes<float, DType::kFloat32>(); }
TEST(BatchKernel, ScalesFloat64AsTheHostDoes) { ScalesAsTheHostDoes<double, DType::kFloat64>(); }
TEST(BatchKernel, ScalesFloat16AsTheHostDoes) { ScalesAsTheHostDoes<uint16_t, DType::kFloat16>(); }
TEST(BatchKernel, ScalesBfloat16AsTheHostDoes) {
  ScalesAsTheHostDoes<uint16_t, DType::kBfloat16>();
}
TEST(BatchKernel, ScalesFloat8E4m3AsTheHostDoes) {
  ScalesAsTheHostDoes<uint8_t, DType::kFloat8E4m3>();
}
TEST(BatchKernel, ScalesFloat8E5m2AsTheHostDoes) {
  ScalesAsTheHostDoes<uint8_t, DType::kFloat8E5m2>();
}

// Between two narrow types: once widened and once rounded.
TEST(BatchKernel, ConvertsFloat8ToFloat16AndBack) {
  for (const DType small : {DType::kFloat8E4m3, DType::kFloat8E5m2}) {
    std::vector<uint8_t> values(256), back(256);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(i);
    std::vector<uint16_t> halves(256);
    Move({small, DType::kFloat16, 1.0}, values.data(), halves.data(), 256);
    Move({DType::kFloat16, small, 1.0}, halves.data(), back.data(), 256);
    for (uint32_t i = 0; i < 256; ++i) {
      const bool nan = (i & 0x7f) > (small == DType::kFloat8E4m3 ? 0x7eU : 0x7cU);
      const bool same = back[i] == i || (nan && (back[i] & 0x7f) == 0x7f);
      ASSERT_TRUE(same) << NameOf(small) << " " << i << ": " << uint32_t{back[i]};
    }
  }
}

TEST(BatchKernel, ScalesInPlace) {
  std::vector<float> values(10000, 3.0F);
  Move({DType::kFloat32, DType::kFloat32, 0.5}, values.data(), values.data(), values.size());
  EXPECT_EQ(values, std::vector<float>(10000, 1.5F));
}

TEST(BatchKernel, CopiesEveryBitAndNothingBeside) {
  std::mt19937 random(18);
  std::vector<unsigned char> input(70000);
  for (unsigned char& byte : input) byte = static_cast<unsigned char>(random());
  for (size_t from : {0, 1, 4, 16}) {
    for (size_t to : {0, 3, 4, 32}) {
      for (size_t bytes : {1, 15, 16, 16384, 16385, 65000}) {
        std::vector<unsigned char> found(input.size(), 0xab);
        Move({DType::kUint8, DType::kUint8, 1.0}, input.data() + from, found.data() + to, bytes);
        std::vector<unsigned char> expected(input.size(), 0xab);
        std::copy_n(input.begin() + static_cast<ptrdiff_t>(from), bytes,
                    expected.begin() + static_cast<ptrdiff_t>(to));
        ASSERT_EQ(found, expected) << bytes << " bytes from " << from << " to " << to;
      }
    }
  }
}

// No element depends on how many threads there are.
TEST(BatchKernel, GivesTheSameForAnyNumberOfThreads) {
  std::vector<float> input(9001);
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i) / 7.0F;
  std::vector<uint16_t> expected(input.size()), found(input.size());
  Move({DType::kFloat32, DType::kFloat16, 1.7}, input.data(), expected.data(), input.size());
  for (unsigned threads : {1U, 3U, 32U, 1024U}) {
    std::fill(found.begin(), found.end(), uint16_t{0});
    Move({DType::kFloat32, DType::kFloat16, 1.7}, input.data(), found.data(), input.size(),
         threads);
    ASSERT_EQ(found, expected) << threads;
  }
}

TEST(BatchKernel, FindsTheSegmentOfEachTile) {
  const std::array<BatchSegment, 4> segments = {
      {{0, 0, 1, 0, 0}, {0, 0, 1, 3, 0}, {0, 0, 1, 4, 0}, {0, 0, 1, 9, 0}}};
  const std::array<unsigned, 12> expected = {0, 0, 0, 1, 2, 2, 2, 2, 2, 3, 3, 3};
  for (unsigned tile = 0; tile < expected.size(); ++tile) {
    EXPECT_EQ(batch::SegmentOf(segments.data(), 4, tile), expected[tile]) << tile;
  }
  EXPECT_EQ(batch::SegmentOf(segments.data(), 1, 0), 0U);
}

}  // namespace
}  // namespace hvd
