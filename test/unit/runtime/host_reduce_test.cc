// The reduction loops against a plain reference that shares no code with them: halves are taken
// apart and rounded by arithmetic, integers are added modulo 2^64.
#include "runtime/device/host_reduce.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <cstring>
#include <iostream>
#include <limits>
#include <random>
#include <vector>

#include "runtime/device/adasum.h"
#include "runtime/device/host_kernel_variants.h"
#include "runtime/device/host_kernels.h"

namespace hvd {
namespace {

// ---- reference arithmetic

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A binary format with `mantissa` stored bits and the given smallest exponent of a normal number.
struct SmallFormat {
  int bits, mantissa;
  int smallest;
  double largest;
  bool infinite = true;  // without infinities, all ones is the only NaN and takes their place
  constexpr int exponents() const { return 1 << (bits - 1 - mantissa); }
  constexpr int sign() const { return 1 << (bits - 1); }
};
constexpr SmallFormat kFloat16{16, 10, -14, 65504.0};
constexpr SmallFormat kBfloat16{16, 7, -126, 3.3895313892515355e38};
constexpr SmallFormat kFloat8E4m3{8, 3, -6, 448.0, false};
constexpr SmallFormat kFloat8E5m2{8, 2, -14, 57344.0};

float Decode(SmallFormat format, uint32_t bits) {
  const int exponent = (bits >> format.mantissa) & (format.exponents() - 1);
  const int fraction = bits & ((1 << format.mantissa) - 1);
  const bool all_ones = fraction == (1 << format.mantissa) - 1;
  double value = 0;
  if (exponent == format.exponents() - 1 && (format.infinite || all_ones)) {
    const bool infinite = format.infinite && fraction == 0;
    value = infinite ? kInfinity : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(fraction, format.smallest - format.mantissa);
  } else {
    value = std::ldexp(fraction + (1 << format.mantissa),
                       exponent - 1 + format.smallest - format.mantissa);
  }
  return static_cast<float>((bits & format.sign()) != 0 ? -value : value);
}

// Rounds to nearest even.
uint16_t Encode(SmallFormat format, float value) {
  const int sign = std::signbit(value) ? format.sign() : 0;
  const int infinity = (format.exponents() - 1) << format.mantissa;
  const int nan = format.infinite ? infinity | (1 << (format.mantissa - 1)) : format.sign() - 1;
  if (std::isnan(value)) return static_cast<uint16_t>(sign | nan);
  double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude == 0) return static_cast<uint16_t>(sign);
  int exponent = std::isinf(value) ? 1000 : std::max(std::ilogb(magnitude), format.smallest);
  double steps = std::nearbyint(std::ldexp(magnitude, format.mantissa - exponent));
  if (std::isinf(value) || std::ldexp(steps, exponent - format.mantissa) > format.largest) {
    return static_cast<uint16_t>(sign | (format.infinite ? infinity : nan));
  }
  // Steps counts 2^(exponent - mantissa); the bit patterns of the format count on across its
  // exponents.
  auto pattern = static_cast<int>(steps) + ((exponent - format.smallest) << format.mantissa);
  return static_cast<uint16_t>(sign | pattern);
}

template <typename T>
struct Plain {
  using Raw = T;
  using Acc = T;
  static Acc Load(Raw x) { return x; }
  static Raw Store(Acc x) { return x; }
  static Acc Scale(Acc x, double by) {
    if constexpr (std::is_same_v<T, float>) return x * static_cast<float>(by);
    return static_cast<Acc>(static_cast<double>(x) * by);
  }
};
template <const SmallFormat& kFormat>
struct Small {
  using Raw = std::conditional_t<kFormat.bits == 16, uint16_t, uint8_t>;
  using Acc = float;
  static Acc Load(Raw x) { return Decode(kFormat, x); }
  static Raw Store(Acc x) { return static_cast<Raw>(Encode(kFormat, x)); }
  static Acc Scale(Acc x, double by) { return x * static_cast<float>(by); }
};
// Any byte but 0 is true.
struct Truth {
  using Raw = uint8_t;
  using Acc = bool;
  static Acc Load(Raw x) { return x != 0; }
  static Raw Store(Acc x) { return x ? 1 : 0; }
  static Acc Scale(Acc x, double by) { return x && by != 0; }
};

template <typename Acc>
Acc Combine(Arithmetic op, Acc a, Acc b) {
  if (op == Arithmetic::kMin) return b < a ? b : a;
  if (op == Arithmetic::kMax) return a < b ? b : a;
  if constexpr (std::is_same_v<Acc, bool>) {
    return op == Arithmetic::kSum ? a || b : a && b;
  } else if constexpr (std::is_integral_v<Acc>) {
    auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<Acc>(op == Arithmetic::kSum ? x + y : x * y);
  } else {
    return op == Arithmetic::kSum ? a + b : a * b;
  }
}

template <typename E>
typename E::Raw Reference(const ReduceSpec& spec,
                          const std::vector<std::vector<typename E::Raw>>& inputs, size_t i) {
  auto scaled = [](typename E::Acc x, double by) { return by == 1.0 ? x : E::Scale(x, by); };
  auto total = scaled(E::Load(inputs[0][i]), spec.prescale);
  for (size_t k = 1; k < inputs.size(); ++k) {
    total = Combine(spec.arithmetic, total, scaled(E::Load(inputs[k][i]), spec.prescale));
  }
  return E::Store(scaled(total, spec.postscale));
}

// Calls body.operator()<E>(dtype) for every type that can be reduced.
template <typename Body>
void ForEveryType(Body body) {
  body.template operator()<Plain<uint8_t>>(DType::kUint8);
  body.template operator()<Plain<int8_t>>(DType::kInt8);
  body.template operator()<Plain<uint16_t>>(DType::kUint16);
  body.template operator()<Plain<int16_t>>(DType::kInt16);
  body.template operator()<Plain<int32_t>>(DType::kInt32);
  body.template operator()<Plain<int64_t>>(DType::kInt64);
  body.template operator()<Small<kFloat16>>(DType::kFloat16);
  body.template operator()<Plain<float>>(DType::kFloat32);
  body.template operator()<Plain<double>>(DType::kFloat64);
  body.template operator()<Small<kBfloat16>>(DType::kBfloat16);
  body.template operator()<Truth>(DType::kBool);
  body.template operator()<Small<kFloat8E4m3>>(DType::kFloat8E4m3);
  body.template operator()<Small<kFloat8E5m2>>(DType::kFloat8E5m2);
}

constexpr Arithmetic kEveryOp[] = {Arithmetic::kSum, Arithmetic::kMin, Arithmetic::kMax,
                                   Arithmetic::kProduct};

// Bit for bit, except that one NaN is as good as another.
template <typename E>
bool Same(typename E::Raw a, typename E::Raw b) {
  if (std::memcmp(&a, &b, sizeof a) == 0) return true;
  if constexpr (std::is_floating_point_v<typename E::Acc>)
    return std::isnan(E::Load(a)) && std::isnan(E::Load(b));
  return false;
}

// ---- tests

TEST(Reference, KnowsTheSmallFormats) {
  EXPECT_EQ(Encode(kFloat16, 1.0f), 0x3c00);
  EXPECT_EQ(Encode(kFloat16, 65504.0f), 0x7bff);
  EXPECT_EQ(Encode(kFloat16, 65520.0f), 0x7c00);
  EXPECT_EQ(Encode(kFloat16, 5.9604645e-08f), 0x0001);
  EXPECT_EQ(Encode(kFloat16, -2.0f), 0xc000);
  EXPECT_EQ(Encode(kBfloat16, 1.0f), 0x3f80);
  EXPECT_EQ(Encode(kFloat8E4m3, 1.0f), 0x38);
  EXPECT_EQ(Encode(kFloat8E4m3, 448.0f), 0x7e);
  EXPECT_EQ(Encode(kFloat8E4m3, 480.0f), 0x7f);
  EXPECT_EQ(Encode(kFloat8E4m3, -0x1p-9f), 0x81);
  EXPECT_EQ(Encode(kFloat8E5m2, 1.0f), 0x3c);
  EXPECT_EQ(Encode(kFloat8E5m2, 57344.0f), 0x7b);
  EXPECT_EQ(Encode(kFloat8E5m2, 61440.0f), 0x7c);
  for (SmallFormat format : {kFloat16, kBfloat16, kFloat8E4m3, kFloat8E5m2}) {
    for (uint32_t bits = 0; bits < (1u << format.bits); ++bits) {
      float value = Decode(format, static_cast<uint16_t>(bits));
      ASSERT_TRUE(std::isnan(value) || Encode(format, value) == bits) << bits;
    }
  }
}

// Ranges that begin and end anywhere, one to nine inputs, one output or as many as inputs, in place
// or not.
TEST(HostReduce, EveryTypeAndOperationEqualsThePlainReference) {
  ForEveryType([]<typename E>(DType dtype) {
    using Raw = typename E::Raw;
    std::mt19937 random(7);
    constexpr size_t kSize = 1100;
    for (size_t input_count = 1; input_count <= 9; ++input_count) {
      std::vector<std::vector<Raw>> inputs(input_count, std::vector<Raw>(kSize));
      for (auto& input : inputs) {
        for (Raw& x : input) x = E::Store(static_cast<typename E::Acc>(random() % 4));
      }
      for (Arithmetic op : kEveryOp) {
        for (auto [pre, post] : {std::pair{1.0, 1.0}, {2.0, 1.0}, {1.0, 0.5}, {2.0, 0.5}}) {
          const ReduceSpec spec{dtype, op, pre, post};
          std::vector<Raw> expected(kSize);
          for (size_t i = 0; i < kSize; ++i) expected[i] = Reference<E>(spec, inputs, i);
          for (auto [first, count] :
               {std::pair<size_t, size_t>{0, 0}, {0, 1}, {3, 61}, {0, kSize}, {511, 514}}) {
            for (bool in_place : {false, true}) {
              auto work = inputs;
              std::vector<std::vector<Raw>> apart(2, std::vector<Raw>(kSize, E::Store(9)));
              std::vector<const void*> in;
              std::vector<void*> out;
              for (auto& w : work) in.push_back(w.data());
              for (auto& w : in_place ? work : apart) out.push_back(w.data());
              ReduceRange(spec, in, out, first, count);
              auto& results = in_place ? work : apart;
              for (size_t k = 0; k < results.size(); ++k) {
                for (size_t i = 0; i < kSize; ++i) {
                  bool inside = i >= first && i < first + count;
                  Raw want = inside ? expected[i] : in_place ? inputs[k][i] : E::Store(9);
                  ASSERT_TRUE(Same<E>(results[k][i], want))
                      << NameOf(dtype) << " op " << static_cast<int>(op) << " inputs "
                      << input_count << " range " << first << "+" << count << " output " << k
                      << " at " << i;
                }
              }
              ASSERT_TRUE(in_place || work == inputs)
                  << "an input that is no output must not change";
            }
          }
        }
      }
    }
  });
}

// Long enough for the loops to look ahead, at both ends of what they may touch.
TEST(HostReduce, LongRangesEqualThePlainReference) {
  ForEveryType([]<typename E>(DType dtype) {
    using Raw = typename E::Raw;
    std::mt19937 random(29);
    const size_t count = (20 << 10) / sizeof(Raw) + 5;
    std::vector<std::vector<Raw>> inputs(2, std::vector<Raw>(count));
    for (auto& input : inputs) {
      for (Raw& x : input) x = E::Store(static_cast<typename E::Acc>(random() % 4));
    }
    const bool scale = std::is_floating_point_v<typename E::Acc>;
    for (double factor : scale ? std::vector<double>{1.0, 0.5} : std::vector<double>{1.0}) {
      const ReduceSpec spec{dtype, Arithmetic::kSum, factor, factor};
      for (size_t outputs : {1u, 2u}) {
        std::vector<std::vector<Raw>> results(2, std::vector<Raw>(count, E::Store(1)));
        const void* in[] = {inputs[0].data(), inputs[1].data()};
        void* out[] = {results[0].data(), results[1].data()};
        ReduceRange(spec, in, std::span(out, outputs), 1, count - 2);
        for (size_t k = 0; k < 2; ++k) {
          for (size_t i = 0; i < count; ++i) {
            const bool inside = k < outputs && i > 0 && i < count - 1;
            const Raw want = inside ? Reference<E>(spec, inputs, i) : E::Store(1);
            ASSERT_TRUE(Same<E>(results[k][i], want))
                << NameOf(dtype) << " times " << factor << ", output " << k << " at " << i;
          }
        }
      }
    }
  });
}

TEST(HostReduce, IntegersWrapAround) {
  ForEveryType([]<typename E>(DType dtype) {
    using Raw = typename E::Raw;
    if constexpr (std::is_integral_v<typename E::Acc>) {
      constexpr Raw kMax = std::numeric_limits<Raw>::max();
      for (size_t input_count : {2u, 3u}) {
        for (Arithmetic op : {Arithmetic::kSum, Arithmetic::kProduct}) {
          std::vector<std::vector<Raw>> inputs(input_count, std::vector<Raw>(100, kMax));
          std::vector<const void*> in;
          for (auto& input : inputs) in.push_back(input.data());
          std::vector<Raw> out(100);
          void* outputs[] = {out.data()};
          ReduceSpec spec{dtype, op};
          ReduceRange(spec, in, outputs, 0, 100);
          EXPECT_EQ(out, std::vector<Raw>(100, Reference<E>(spec, inputs, 0))) << NameOf(dtype);
        }
      }
    }
  });
}

template <typename E>
typename E::Raw SumOf(DType dtype, std::vector<typename E::Raw> values) {
  std::vector<const void*> in;
  for (auto& value : values) in.push_back(&value);
  typename E::Raw result{};
  void* out[] = {&result};
  ReduceRange({dtype, Arithmetic::kSum}, in, out, 0, 1);
  return result;
}

// 1 + 2^-9 + 2^-9: rounding after each step would give 1, rounding once gives 1 + 2^-7 (to even) in
// bfloat16.
TEST(HostReduce, HalvesAreRoundedOnce) {
  using Bf16 = Small<kBfloat16>;
  using Fp16 = Small<kFloat16>;
  auto bf = [](float x) { return Encode(kBfloat16, x); };
  auto fp = [](float x) { return Encode(kFloat16, x); };
  EXPECT_EQ(SumOf<Bf16>(DType::kBfloat16, {bf(1), bf(0x1p-8f), bf(0x1p-9f)}), bf(1 + 0x1p-7f));
  EXPECT_EQ(SumOf<Fp16>(DType::kFloat16, {fp(1), fp(0x1p-11f), fp(0x1p-12f)}), fp(1 + 0x1p-10f));
  EXPECT_EQ(SumOf<Fp16>(DType::kFloat16, {fp(60000), fp(60000), fp(-60000)}), fp(60000))
      << "no overflow on the way";
}

TEST(HostReduce, HalvesRoundToNearestEven) {
  using Bf16 = Small<kBfloat16>;
  auto bf = [](float x) { return Encode(kBfloat16, x); };
  EXPECT_EQ(SumOf<Bf16>(DType::kBfloat16, {bf(1), bf(0x1p-8f)}), bf(1))
      << "a tie goes to the even neighbour";
  EXPECT_EQ(SumOf<Bf16>(DType::kBfloat16, {bf(1 + 0x1p-7f), bf(0x1p-8f)}), bf(1 + 0x1p-6f));
  EXPECT_EQ(SumOf<Bf16>(DType::kBfloat16, {0x7f7f, 0x7f7f}), 0x7f80)
      << "too large becomes infinite";
  EXPECT_EQ(SumOf<Small<kFloat16>>(DType::kFloat16, {0x7bff, 0x7bff}), 0x7c00);
}

TEST(HostReduce, ANanStaysANan) {
  for (uint16_t nan : {0x7f81, 0x7fc0, 0x7fff, 0xff81}) {
    for (size_t others : {0u, 1u, 3u}) {
      std::vector<uint16_t> values(others, Encode(kBfloat16, 1));
      values.push_back(nan);
      EXPECT_TRUE(std::isnan(Decode(kBfloat16, SumOf<Small<kBfloat16>>(DType::kBfloat16, values))));
    }
  }
  EXPECT_TRUE(
      std::isnan(Decode(kFloat16, SumOf<Small<kFloat16>>(DType::kFloat16, {0x7e00, 0x3c00}))));
  EXPECT_TRUE(std::isnan(SumOf<Plain<float>>(DType::kFloat32, {kInfinity, -kInfinity})));
}

// 49 * (1 / 49.0) is a little less than 1, so an average must divide.
TEST(HostReduce, IntegersAreDividedExactly) {
  for (int32_t ranks = 1; ranks <= 100; ++ranks) {
    std::vector<int32_t> ones(ranks, 1);
    std::vector<const void*> in;
    for (const int32_t& one : ones) in.push_back(&one);
    int32_t average = 0;
    void* out[] = {&average};
    ReduceRange({.dtype = DType::kInt32, .divisor = static_cast<double>(ranks)}, in, out, 0, 1);
    EXPECT_EQ(average, 1) << ranks;
  }
}

// ---- sums of integers that are divided or scaled

// The bits of the type, of one number in two words.
__int128 AsWide(int64_t x) { return x; }

// In numbers of 128 bits, as no type here has them.
template <typename T>
T ScaledSumOf(const ReduceSpec& spec, const std::vector<std::vector<T>>& inputs, size_t i) {
  __int128 sum = 0;
  for (const auto& input : inputs) {
    const bool scaled = spec.prescale != 1.0;
    sum += scaled ? static_cast<__int128>(static_cast<double>(input[i]) * spec.prescale)
                  : AsWide(input[i]);
  }
  if (spec.postscale == 1.0) return static_cast<T>(sum / static_cast<__int128>(spec.divisor));
  return static_cast<T>(
      static_cast<__int128>(static_cast<double>(sum) * spec.postscale / spec.divisor));
}

// The ends of the type in all combinations that matter, its middle, and any values.
template <typename T>
std::vector<std::vector<T>> NumbersNearTheEnds(size_t inputs, size_t count) {
  constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  std::mt19937_64 random(31);
  std::vector<std::vector<T>> numbers(inputs, std::vector<T>(count));
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < inputs; ++k) {
      const T any = static_cast<T>(random()), small = static_cast<T>(random() % 4);
      const T mixed[] = {kMost, kLeast, any, static_cast<T>(kMost - small),
                         static_cast<T>(kLeast + small)};
      numbers[k][i] = i < 5 ? mixed[i] : mixed[random() % 5];
    }
  }
  return numbers;
}

template <typename T>
std::vector<ReduceSpec> ScaledSpecs(DType dtype, size_t inputs) {
  const auto size = static_cast<double>(inputs);
  return {{.dtype = dtype, .divisor = size},
          {.dtype = dtype, .postscale = 0.5},
          {.dtype = dtype, .prescale = 0.5, .divisor = size},
          {.dtype = dtype, .prescale = 2.0, .postscale = 0.25, .divisor = size},
          {.dtype = dtype, .divisor = 3.0}};
}

TEST(HostReduce, AveragesOfIntegersNearTheEndsOfTheirTypeAreExact) {
  ForEveryType([]<typename E>(DType dtype) {
    using Raw = typename E::Raw;
    if constexpr (std::is_integral_v<typename E::Acc> && !std::is_same_v<E, Truth>) {
      for (size_t count : {5u, 1300u}) {
        for (size_t input_count : {1u, 2u, 3u, 7u}) {
          const auto inputs = NumbersNearTheEnds<Raw>(input_count, count);
          std::vector<const void*> in;
          for (auto& input : inputs) in.push_back(input.data());
          for (const ReduceSpec& spec : ScaledSpecs<Raw>(dtype, input_count)) {
            for (const KernelVariant& variant : RunnableKernelVariants()) {
              std::vector<Raw> a(count), b(count);
              void* out[] = {a.data(), b.data()};
              variant.kernels->reduce({dtype, spec.arithmetic, spec.prescale, spec.postscale,
                                       spec.divisor, in.data(), input_count, out, 2, 0, count});
              for (size_t i = 0; i < count; ++i) {
                ASSERT_EQ(a[i], ScaledSumOf<Raw>(spec, inputs, i))
                    << variant.name << " " << NameOf(dtype) << " inputs " << input_count << " pre "
                    << spec.prescale << " post " << spec.postscale << " at " << i;
              }
              EXPECT_EQ(a, b);
            }
          }
        }
      }
    }
  });
}

// Over several hosts: each host's sum is wide, and only the result is narrow.
TEST(HostReduce, SumsOfIntegersThatAreMadeInPartsAreThoseOfOnePlace) {
  ForEveryType([]<typename E>(DType dtype) {
    using Raw = typename E::Raw;
    if constexpr (std::is_integral_v<typename E::Acc> && !std::is_same_v<E, Truth>) {
      constexpr size_t kCount = 1300;
      const auto inputs = NumbersNearTheEnds<Raw>(5, kCount);
      const DType wide = AccumulatorOf(dtype);
      // Aligned for words, not for pairs of them, as behind the report in a message.
      std::vector<std::byte> sums[2], total(kCount * SizeOf(wide) + 8);
      for (const ReduceSpec& spec : ScaledSpecs<Raw>(dtype, 5)) {
        std::vector<const void*> parts;
        for (size_t host = 0, first = 0; host < 2; ++host) {
          std::vector<const void*> in;
          for (size_t last = host == 0 ? 2 : 5; first < last; ++first)
            in.push_back(inputs[first].data());
          sums[host].resize(kCount * SizeOf(wide) + 8);
          WideReduceRange({.dtype = dtype, .prescale = spec.prescale}, in, sums[host].data() + 8, 0,
                          kCount);
          parts.push_back(sums[host].data() + 8);
        }
        void* to = total.data() + 8;
        ReduceRange({.dtype = wide}, parts, {&to, 1}, 0, kCount);
        const void* from = to;
        const ReduceSpec finish{
            .dtype = wide, .postscale = spec.postscale, .divisor = spec.divisor};
        ReduceRange(finish, {&from, 1}, {&to, 1}, 0, kCount);
        std::vector<Raw> result(kCount);
        NarrowRange(dtype, to, result.data(), kCount);
        for (size_t i = 0; i < kCount; ++i) {
          ASSERT_EQ(result[i], ScaledSumOf<Raw>(spec, inputs, i))
              << NameOf(dtype) << " pre " << spec.prescale << " post " << spec.postscale << " at "
              << i;
        }
      }
    }
  });
}

TEST(HostReduce, SaysWhatHasNoAverageAndNoAdasum) {
  for (int dtype = 0; dtype < kDTypeCount; ++dtype) {
    auto d = static_cast<DType>(dtype);
    EXPECT_EQ(CanAverage(d), d != DType::kBool) << NameOf(d);
    bool fine = d == DType::kFloat16 || d == DType::kBfloat16 || d == DType::kFloat32 ||
                d == DType::kFloat64;
    EXPECT_EQ(CanAdasum(d), fine) << NameOf(d);
  }
}

// Every float32 that matters to a format: around each of its numbers, between neighbours, beyond
// its range.
template <const SmallFormat& kFormat>
void ExpectRoundedLikeTheReference(DType dtype) {
  for (uint32_t bits = 0; bits < (1u << kFormat.bits); ++bits) {
    const float at = Decode(kFormat, bits), next = Decode(kFormat, (bits + 1) & 0xff);
    for (float x : {at, at / 2 + next / 2, std::nextafter(at / 2 + next / 2, 0.0f),
                    std::nextafter(at / 2 + next / 2, kInfinity), at * 1.03f, at * 1e5f}) {
      // x as a sum of two elements is not to be had, but as a product with a scale of 1 it is.
      uint8_t one = static_cast<uint8_t>(Encode(kFormat, 1)), result = 0;
      const void* in[] = {&one};
      void* out[] = {&result};
      ReduceRange({.dtype = dtype, .prescale = static_cast<double>(x)}, in, out, 0, 1);
      const auto expected = static_cast<uint8_t>(Encode(kFormat, x));
      ASSERT_TRUE(Same<Small<kFormat>>(result, expected)) << x << " gave " << int{result};
    }
  }
}

TEST(HostReduce, Float8IsRoundedToNearestEvenAndOverflowsLikePyTorch) {
  ExpectRoundedLikeTheReference<kFloat8E4m3>(DType::kFloat8E4m3);
  ExpectRoundedLikeTheReference<kFloat8E5m2>(DType::kFloat8E5m2);
  EXPECT_EQ(SumOf<Small<kFloat8E4m3>>(DType::kFloat8E4m3, {0x7e, 0x30}), 0x7e) << "448 + 0.5";
  EXPECT_EQ(SumOf<Small<kFloat8E4m3>>(DType::kFloat8E4m3, {0x7e, 0x7e}), 0x7f) << "no infinity";
  EXPECT_EQ(SumOf<Small<kFloat8E4m3>>(DType::kFloat8E4m3, {0x7e, 0x7e, 0xfe}), 0x7e)
      << "no overflow on the way";
  EXPECT_EQ(SumOf<Small<kFloat8E5m2>>(DType::kFloat8E5m2, {0x7b, 0x7b}), 0x7c);
}

TEST(HostReduce, BoolIsOrAndAnd) {
  auto reduce = [](Arithmetic op, std::vector<uint8_t> values) {
    std::vector<const void*> in;
    for (uint8_t& value : values) in.push_back(&value);
    uint8_t result = 9;
    void* out[] = {&result};
    ReduceRange({DType::kBool, op}, in, out, 0, 1);
    return int{result};
  };
  for (Arithmetic op : {Arithmetic::kSum, Arithmetic::kMax}) {
    EXPECT_EQ(reduce(op, {0, 0, 0}), 0);
    EXPECT_EQ(reduce(op, {0, 255, 255}), 1);
    EXPECT_EQ(reduce(op, {2, 2}), 1);
  }
  for (Arithmetic op : {Arithmetic::kProduct, Arithmetic::kMin}) {
    EXPECT_EQ(reduce(op, {1, 2, 16}), 1) << "any byte but 0 is true";
    EXPECT_EQ(reduce(op, {1, 0, 1}), 0);
  }
}

// ---- Adasum

TEST(HostReduce, DotProductsAndWeightedSumsAreRight) {
  std::mt19937 random(17);
  for (size_t n : {1u, 2u, 7u, 8u, 9u, 20u}) {
    std::vector<std::vector<double>> inputs(n, std::vector<double>(1000));
    std::vector<const void*> in;
    for (auto& input : inputs) {
      for (double& x : input) x = static_cast<double>(random() % 16);
      in.push_back(input.data());
    }
    std::vector<double> products(n * (n + 1) / 2, 1.0), weights;
    AddDotProducts(DType::kFloat64, in, 3, 990, products);
    size_t at = 0;
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = i; j < n; ++j) {
        double expected = 1;
        for (size_t k = 3; k < 993; ++k) expected += inputs[i][k] * inputs[j][k];
        ASSERT_EQ(products[at++], expected) << i << " " << j << " of " << n;
      }
    }
    for (size_t i = 0; i < n; ++i) weights.push_back(static_cast<double>(i) - 2);
    std::vector<double> result(1000, -7.0);
    void* out[] = {result.data()};
    WeightedSumRange(DType::kFloat64, in, weights, out, 3, 990);
    for (size_t k = 0; k < 1000; ++k) {
      double expected = 0;
      for (size_t i = 0; i < n; ++i) expected += weights[i] * inputs[i][k];
      ASSERT_EQ(result[k], k < 3 || k >= 993 ? -7.0 : expected);
    }
  }
}

TEST(AdasumWeights, FollowTheDefinition) {
  // Vectors a = (1, 0), b = (1, 1): a.b = 1, |a|^2 = 1, |b|^2 = 2.
  EXPECT_EQ(AdasumWeights(std::vector<double>{1, 1, 2}, 2), (std::vector<double>{0.5, 0.75}));
  EXPECT_EQ(AdasumWeights(std::vector<double>{5}, 1), (std::vector<double>{1}));
  EXPECT_EQ(AdasumWeights(std::vector<double>{4, 0, 9}, 2), (std::vector<double>{1, 1}))
      << "orthogonal vectors are added";
  EXPECT_EQ(AdasumWeights(std::vector<double>{4, 4, 4}, 2), (std::vector<double>{0.5, 0.5}))
      << "equal vectors are averaged";
  EXPECT_EQ(AdasumWeights(std::vector<double>{0, 0, 9}, 2), (std::vector<double>{1, 1}))
      << "nothing and something";
  // a, a, a: the pair gives a, and a with the odd one gives a.
  EXPECT_EQ(AdasumWeights(std::vector<double>{1, 1, 1, 1, 1, 1}, 3),
            (std::vector<double>{0.25, 0.25, 0.5}));
  // a, -a and b: the pair vanishes and b stays alone.
  const std::vector<double> gone = AdasumWeights(std::vector<double>{1, -1, 1, 1, -1, 1}, 3);
  EXPECT_EQ(gone[2], 1);
  EXPECT_EQ(gone[0], gone[1]);
}

// ---- variants per instruction set

// Random bit patterns: every kind of number, infinities and NaN among them.
TEST(HostReduce, EveryVariantGivesTheSameBits) {
  const std::vector<KernelVariant> variants = RunnableKernelVariants();
  EXPECT_EQ(variants.back().name, KernelsInUse().name) << "the best one is in use";
  ForEveryType([&]<typename E>(DType dtype) {
    using Raw = typename E::Raw;
    std::mt19937_64 random(11);
    constexpr size_t kSize = 777;
    for (size_t input_count : {1u, 2u, 3u, 5u, 40u}) {
      std::vector<std::vector<Raw>> inputs(input_count, std::vector<Raw>(kSize));
      for (auto& input : inputs) {
        for (Raw& x : input) {
          uint64_t bits = random();
          std::memcpy(&x, &bits, sizeof x);
        }
      }
      std::vector<const void*> in;
      for (auto& input : inputs) in.push_back(input.data());
      for (Arithmetic op : kEveryOp) {
        // A scaled integer may leave its type, which is nobody's promise.
        const bool scale = std::is_floating_point_v<typename E::Acc>;
        for (double factor : scale ? std::vector<double>{1.0, 1.0 / 3} : std::vector<double>{1.0}) {
          std::vector<std::vector<Raw>> results;
          for (const KernelVariant& variant : variants) {
            std::vector<Raw> a(kSize), b(kSize);
            void* out[] = {a.data(), b.data()};
            variant.kernels->reduce({dtype, op, factor, factor, 3 * factor, in.data(), in.size(),
                                     out, 2, 1, kSize - 1});
            ASSERT_EQ(std::memcmp(a.data(), b.data(), kSize * sizeof(Raw)), 0)
                << "both outputs get the same";
            results.push_back(a);
          }
          for (size_t v = 1; v < results.size(); ++v) {
            for (size_t i = 0; i < kSize; ++i) {
              ASSERT_TRUE(Same<E>(results[v][i], results[0][i]))
                  << variants[v].name << " " << NameOf(dtype) << " op " << static_cast<int>(op)
                  << " at " << i;
            }
          }
        }
      }
    }
  });
}

// Each half by itself, and each float32 near one: the results of a variant's conversions. More
// elements than the vectors of any variant hold, and a rest.
template <const SmallFormat& kFormat>
void ExpectConvertedLikeTheReference(const KernelVariant& variant, DType dtype) {
  constexpr size_t kSize = (1 << 16) + 7;
  std::vector<uint16_t> values(kSize), results(kSize), again(kSize);
  for (size_t i = 0; i < kSize; ++i) values[i] = static_cast<uint16_t>(i);
  const void* in[] = {values.data()};
  void* out[] = {results.data(), again.data()};
  // A factor of 1 / 3 rounds, of 2^-13 makes subnormals, of 1e5 what is too large.
  for (float factor : {1.0f, 1.0f / 3, 0x1p-13f, 1.00390625f, 1e5f}) {
    variant.kernels->reduce(
        {dtype, Arithmetic::kSum, double{factor}, 1, 1, in, 1, out, 2, 0, kSize});
    EXPECT_EQ(results, again) << "both outputs get the same";
    for (size_t i = 0; i < kSize; ++i) {
      const uint16_t expected = Encode(kFormat, Decode(kFormat, values[i]) * factor);
      ASSERT_TRUE(Same<Small<kFormat>>(results[i], expected))
          << variant.name << " " << NameOf(dtype) << " of " << values[i] << " by " << factor
          << " is " << results[i] << ", not " << expected;
    }
  }
}

TEST(HostReduce, EveryVariantConvertsEveryHalfLikeTheReference) {
  for (const KernelVariant& variant : RunnableKernelVariants()) {
    ExpectConvertedLikeTheReference<kFloat16>(variant, DType::kFloat16);
    ExpectConvertedLikeTheReference<kBfloat16>(variant, DType::kBfloat16);
  }
}

// Sums that other places round (WideReduceRange, NarrowRange) are those of ReduceRange.
TEST(HostReduce, EveryVariantNarrowsWhatItSummedWide) {
  std::mt19937 random(23);
  constexpr size_t kSize = 1111;
  std::vector<std::vector<uint16_t>> inputs(3, std::vector<uint16_t>(kSize));
  std::vector<const void*> in;
  for (auto& input : inputs) {
    for (uint16_t& x : input) x = static_cast<uint16_t>(random());
    in.push_back(input.data());
  }
  for (DType dtype : {DType::kFloat16, DType::kBfloat16}) {
    for (const KernelVariant& variant : RunnableKernelVariants()) {
      std::vector<uint16_t> whole(kSize), parts(kSize);
      std::vector<float> wide(kSize);
      void* out[] = {whole.data()};
      KernelArgs args{dtype, Arithmetic::kSum, 1, 1, 1, in.data(), 3, out, 1, 0, kSize};
      variant.kernels->reduce(args);
      out[0] = wide.data();
      variant.kernels->wide_reduce(args);
      const void* narrow_in[] = {wide.data()};
      out[0] = parts.data();
      args.inputs = narrow_in;
      args.input_count = 1;
      variant.kernels->narrow(args);
      for (size_t i = 0; i < kSize; ++i) {
        const bool same = dtype == DType::kFloat16 ? Same<Small<kFloat16>>(parts[i], whole[i])
                                                   : Same<Small<kBfloat16>>(parts[i], whole[i]);
        ASSERT_TRUE(same) << variant.name << " " << NameOf(dtype) << " at " << i;
      }
    }
  }
}

TEST(HostReduce, EveryVariantGivesTheSameAdasum) {
  std::mt19937 random(19);
  for (DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    constexpr size_t kInputs = 5, kSize = 1234;
    std::vector<std::vector<std::byte>> inputs(kInputs, std::vector<std::byte>(kSize * 8));
    std::vector<const void*> in;
    for (auto& input : inputs) {
      for (size_t i = 0; i < kSize; ++i) {
        const double x = std::normal_distribution<double>()(random);
        const auto f = static_cast<float>(x);
        const uint16_t half = Encode(dtype == DType::kFloat16 ? kFloat16 : kBfloat16, f);
        const void* bits = SizeOf(dtype) == 2         ? &half
                           : dtype == DType::kFloat32 ? static_cast<const void*>(&f)
                                                      : &x;
        std::memcpy(input.data() + i * SizeOf(dtype), bits, SizeOf(dtype));
      }
      in.push_back(input.data());
    }
    const double weights[kInputs] = {0.3, -1, 7.7, 1e-3, 0.9};
    std::vector<double> first_products;
    std::vector<std::byte> first_sum;
    for (const KernelVariant& variant : RunnableKernelVariants()) {
      std::vector<double> products(kInputs * (kInputs + 1) / 2, 0.0);
      std::vector<std::byte> sum(kSize * 8);
      void* out[] = {sum.data()};
      const KernelArgs args{dtype, Arithmetic::kSum, 1, 1, 1, in.data(), kInputs, out, 1,
                            1,     kSize - 1};
      variant.kernels->dot_products(args, products.data());
      variant.kernels->weighted_sum(args, weights);
      if (first_sum.empty()) first_products = products, first_sum = sum;
      EXPECT_EQ(products, first_products) << variant.name << " " << NameOf(dtype);
      EXPECT_EQ(sum, first_sum) << variant.name << " " << NameOf(dtype);
    }
  }
}

// The same elements in other pieces, at other places: what lets any rank do any chunk.
TEST(HostReduce, TheResultDoesNotDependOnHowTheRangeIsCut) {
  std::mt19937 random(13);
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<std::vector<float>> inputs(5, std::vector<float>(3000));
  std::vector<const void*> in;
  for (auto& input : inputs) {
    for (float& x : input) x = values(random);
    in.push_back(input.data());
  }
  std::vector<float> whole(3000), pieces(3000);
  void* out[] = {whole.data()};
  ReduceRange({DType::kFloat32, Arithmetic::kSum}, in, out, 0, 3000);
  out[0] = pieces.data();
  for (size_t first = 0; first < 3000;) {
    size_t count = std::min<size_t>(1 + random() % 700, 3000 - first);
    ReduceRange({DType::kFloat32, Arithmetic::kSum}, in, out, first, count);
    first += count;
  }
  EXPECT_EQ(std::memcmp(whole.data(), pieces.data(), 3000 * sizeof(float)), 0);
}

TEST(DTypes, HaveSizesAndNames) {
  EXPECT_EQ(SizeOf(DType::kBool), 1u);
  EXPECT_EQ(SizeOf(DType::kBfloat16), 2u);
  EXPECT_EQ(SizeOf(DType::kFloat32), 4u);
  EXPECT_EQ(SizeOf(DType::kFloat64), 8u);
  EXPECT_EQ(NameOf(DType::kUint8), "uint8");
  EXPECT_EQ(NameOf(DType::kFloat8E5m2), "float8_e5m2");
  EXPECT_EQ(NameOf(static_cast<DType>(200)), "unknown")
      << "a number from a message may be anything";
}

}  // namespace
}  // namespace hvd
