// The part of DLPack's C exchange API (version 1, dmlc.github.io/dlpack) by which a framework
// exposes a tensor's memory without a copy and without calling Python. The declarations are our
// own.
#ifndef HVD_RUNTIME_API_FROM_PYTHON_DLPACK_H_
#define HVD_RUNTIME_API_FROM_PYTHON_DLPACK_H_

#include <cstdint>

namespace hvd::dlpack {

inline constexpr uint32_t kMajorVersion = 1;

// The attribute of the tensor type; a capsule named kCapsuleName that holds an ExchangeApi.
inline constexpr char kAttribute[] = "__dlpack_c_exchange_api__";
inline constexpr char kCapsuleName[] = "dlpack_exchange_api";

inline constexpr int32_t kCpu = 1;
inline constexpr int32_t kCudaHost = 3;

enum TypeCode : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kBool = 6,
  kFloat8E4M3Fn = 10,
  kFloat8E5M2 = 12,
};

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct Tensor {
  void* data;
  int32_t device_type;
  int32_t device_index;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: contiguous
  uint64_t byte_offset;
};

struct ExchangeHeader {
  uint32_t major;
  uint32_t minor;
  ExchangeHeader* earlier;  // of a lower major version, or null
};

struct ExchangeApi {
  ExchangeHeader header;
  void* allocate;
  void* export_tensor;
  void* import_tensor;
  // 0: *shown views the tensor until control returns to Python. -1: a Python exception is set. May
  // be null.
  int (*show)(void* tensor, Tensor* shown);
  void* current_stream;
};

}  // namespace hvd::dlpack

#endif  // HVD_RUNTIME_API_FROM_PYTHON_DLPACK_H_
