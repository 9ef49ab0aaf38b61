// Reading and writing elements of every type as doubles, one at a time and sharing nothing with the
// code under test.
#ifndef HVD_TEST_FAKES_ELEMENT_VALUES_H_
#define HVD_TEST_FAKES_ELEMENT_VALUES_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>

#include "runtime/device/dtype.h"

namespace hvd::test {

inline double Binary(uint64_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto exponent = static_cast<int>((bits >> mantissa_bits) & ((1u << exponent_bits) - 1));
  const auto fraction = static_cast<double>(bits & ((1u << mantissa_bits) - 1));
  const double value =
      exponent == 0 ? std::ldexp(fraction, 1 - bias - mantissa_bits)
                    : std::ldexp(fraction + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return (bits >> (exponent_bits + mantissa_bits)) != 0 ? -value : value;
}

template <typename T>
double As(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

inline double Read(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::kUint8: return As<uint8_t>(at);
    case DType::kInt8: return As<int8_t>(at);
    case DType::kUint16: return As<uint16_t>(at);
    case DType::kInt16: return As<int16_t>(at);
    case DType::kInt32: return As<int32_t>(at);
    case DType::kInt64: return As<int64_t>(at);
    case DType::kFloat16: return Binary(static_cast<uint64_t>(As<uint16_t>(at)), 5, 10);
    case DType::kFloat32: return As<float>(at);
    case DType::kFloat64: return As<double>(at);
    case DType::kBool: return As<uint8_t>(at) != 0 ? 1 : 0;
    case DType::kBfloat16: return Binary(static_cast<uint64_t>(As<uint16_t>(at)), 8, 7);
    case DType::kFloat8E4m3: return Binary(static_cast<uint64_t>(As<uint8_t>(at)), 4, 3);
    case DType::kFloat8E5m2: return Binary(static_cast<uint64_t>(As<uint8_t>(at)), 5, 2);
    case DType::kInt128: break;  // no tensor has it
  }
  return 0;
}

template <typename T>
void Store(double value, std::byte* at) {
  auto converted = static_cast<T>(value);
  std::memcpy(at, &converted, sizeof converted);
}

// Of a value that the type has.
inline void Write(DType dtype, double value, std::byte* at) {
  switch (dtype) {
    case DType::kInt32: return Store<int32_t>(value, at);
    case DType::kInt64: return Store<int64_t>(value, at);
    case DType::kFloat32: return Store<float>(value, at);
    case DType::kFloat64: return Store<double>(value, at);
    default: break;
  }
  static std::map<std::pair<DType, double>, uint16_t> known;
  auto [entry, missing] = known.try_emplace({dtype, value}, uint16_t{0});
  if (missing) {
    const uint32_t patterns = SizeOf(dtype) == 1 ? 256 : 65536;
    uint32_t bits = 0;
    while (bits < patterns) {
      const auto pattern = static_cast<uint16_t>(bits);
      if (Read(dtype, reinterpret_cast<const std::byte*>(&pattern)) == value) break;
      ++bits;
    }
    ASSERT_LT(bits, patterns) << NameOf(dtype) << " has no " << value;
    entry->second = static_cast<uint16_t>(bits);
  }
  std::memcpy(at, &entry->second, SizeOf(dtype));
}

// Relative distance of two neighbours.
inline double Precision(DType dtype) {
  switch (dtype) {
    case DType::kFloat8E5m2: return 0x1p-2;
    case DType::kFloat8E4m3: return 0x1p-3;
    case DType::kBfloat16: return 0x1p-7;
    case DType::kFloat16: return 0x1p-10;
    case DType::kFloat32: return 0x1p-23;
    case DType::kFloat64: return 0x1p-52;
    default: return 0;
  }
}
inline bool HoldsIntegers(DType dtype) { return dtype != DType::kBool && Precision(dtype) == 0; }

}  // namespace hvd::test

#endif  // HVD_TEST_FAKES_ELEMENT_VALUES_H_
