// What leaders bring to a collective: known to all, so that each can compute what has to come out.
#ifndef HVD_TEST_CONTRACT_RUNTIME_INTER_HOST_VALUES_H_
#define HVD_TEST_CONTRACT_RUNTIME_INTER_HOST_VALUES_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/host_reduce.h"

namespace hvd::test {

using Bytes = std::vector<std::byte>;

inline void ExpectOk(const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); }

inline std::span<const std::byte> AsBytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

inline std::vector<DType> AllTypes() {
  std::vector<DType> types;
  for (int i = 0; i < kDTypeCount; ++i) types.push_back(static_cast<DType>(i));
  return types;
}

// Any bytes, different for each seed.
inline Bytes Noise(size_t bytes, uint32_t seed) {
  Bytes data(bytes);
  uint32_t state = seed * 7919 + 1;
  for (std::byte& b : data) {
    state = state * 1664525 + 1013904223;
    b = static_cast<std::byte>(state >> 24);
  }
  return data;
}

// Numbers whose sum depends on the order in which they are added and on when it is rounded; no
// infinity and no NaN. Integers are any bits.
inline Bytes Values(DType dtype, size_t count, uint32_t seed) {
  Bytes data = Noise(count * SizeOf(dtype), seed * 31 + static_cast<uint32_t>(dtype));
  // Clears the bit of the exponent's upper end, which infinities and NaN have, in its byte.
  const auto clear = [&](std::byte bit) {
    for (size_t i = SizeOf(dtype) - 1; i < data.size(); i += SizeOf(dtype)) data[i] &= ~bit;
  };
  switch (dtype) {
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kFloat16:
    case DType::kBfloat16:
    case DType::kFloat8E4m3:
    case DType::kFloat8E5m2: clear(std::byte{0x40}); break;
    case DType::kBool:
      for (std::byte& b : data) b &= std::byte{1};
      break;
    default: break;
  }
  return data;
}

inline std::vector<Bytes> ValuesOfAll(uint32_t leaders, DType dtype, size_t count) {
  std::vector<Bytes> parts;
  for (uint32_t i = 0; i < leaders; ++i) parts.push_back(Values(dtype, count, i));
  return parts;
}

// In the order of the parts, rounded once.
inline Bytes Combined(const ReduceSpec& spec, const std::vector<Bytes>& parts) {
  std::vector<const void*> inputs;
  for (const Bytes& part : parts) inputs.push_back(part.data());
  Bytes result(parts[0].size());
  void* output = result.data();
  ReduceRange(spec, inputs, {&output, 1}, 0, result.size() / SizeOf(spec.dtype));
  return result;
}

// What the leaders' Values give.
inline Bytes CombinedValues(uint32_t leaders, const ReduceSpec& spec, size_t count) {
  return Combined(spec, ValuesOfAll(leaders, spec.dtype, count));
}

}  // namespace hvd::test

#endif  // HVD_TEST_CONTRACT_RUNTIME_INTER_HOST_VALUES_H_
