// Element types, with the values of hvd_dtype in hvd.h, and the operators of reductions.
#ifndef HVD_RUNTIME_DEVICE_DTYPE_H_
#define HVD_RUNTIME_DEVICE_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hvd {

enum class DType : uint8_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBool = 9,
  kBfloat16 = 10,
  kFloat8E4m3 = 11,
  kFloat8E5m2 = 12,
  // Internal, not in hvd.h and never in a request: the type in which averages of int64 are summed
  // (AccumulatorOf in host_reduce.h). Two 64-bit words, the lower one first.
  kInt128 = 13,
};
inline constexpr int kDTypeCount = 13;  // number of types in hvd.h

constexpr size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kUint16:
    case DType::kInt16:
    case DType::kFloat16:
    case DType::kBfloat16: return 2;
    case DType::kInt32:
    case DType::kFloat32: return 4;
    case DType::kInt64:
    case DType::kFloat64: return 8;
    case DType::kInt128: return 16;
    default: return 1;
  }
}

constexpr std::string_view NameOf(DType dtype) {
  constexpr std::string_view kNames[kDTypeCount] = {
      "uint8",   "int8",    "uint16", "int16",    "int32",       "int64",      "float16",
      "float32", "float64", "bool",   "bfloat16", "float8_e4m3", "float8_e5m2"};
  if (dtype == DType::kInt128) return "int128";
  return static_cast<int>(dtype) < kDTypeCount ? kNames[static_cast<int>(dtype)] : "unknown";
}

// The operator of a reduction.
enum class Arithmetic : unsigned char { kSum, kMin, kMax, kProduct };

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_DTYPE_H_
