#include "runtime/api/from_python/shown_tensor.h"

#include <cstddef>
#include <optional>

namespace hvd {
namespace {

// The dtype in hvd.h for elements of 8, 16, 32 and 64 bits; -1: none.
using OfWidths = std::array<int32_t, 4>;

std::optional<int32_t> OfWidth(const OfWidths& types, uint8_t bits) {
  int32_t type = -1;
  switch (bits) {
    case 8: type = types[0]; break;
    case 16: type = types[1]; break;
    case 32: type = types[2]; break;
    case 64: type = types[3]; break;
    default: break;
  }
  return type < 0 ? std::nullopt : std::optional(type);
}

std::optional<int32_t> TypeOf(dlpack::DataType type) {
  if (type.lanes != 1) return std::nullopt;
  switch (type.code) {
    case dlpack::kInt: return OfWidth({HVD_INT8, HVD_INT16, HVD_INT32, HVD_INT64}, type.bits);
    case dlpack::kUInt: return OfWidth({HVD_UINT8, HVD_UINT16, -1, -1}, type.bits);
    case dlpack::kFloat: return OfWidth({-1, HVD_FLOAT16, HVD_FLOAT32, HVD_FLOAT64}, type.bits);
    case dlpack::kBfloat: return OfWidth({-1, HVD_BFLOAT16, -1, -1}, type.bits);
    case dlpack::kBool: return OfWidth({HVD_BOOL, -1, -1, -1}, type.bits);
    case dlpack::kFloat8E4M3Fn: return OfWidth({HVD_FLOAT8_E4M3, -1, -1, -1}, type.bits);
    case dlpack::kFloat8E5M2: return OfWidth({HVD_FLOAT8_E5M2, -1, -1, -1}, type.bits);
    default: return std::nullopt;
  }
}

}  // namespace

bool ShownTensor::ReadShape(const dlpack::Tensor& shown) {
  if (shown.ndim < 0 || shown.ndim > kMostDimensions) return false;
  int64_t elements = 1;
  for (int i = shown.ndim - 1; i >= 0; --i) {
    const int64_t extent = shown.shape[i];
    if (extent < 1) return false;
    if (shown.strides != nullptr && extent != 1 && shown.strides[i] != elements) return false;
    extents_[static_cast<size_t>(i)] = extent;
    elements *= extent;
  }
  tensor_.shape = extents_.data();
  tensor_.ndim = shown.ndim;
  return true;
}

bool ShownTensor::Read(const dlpack::Tensor& shown) {
  const std::optional<int32_t> type = TypeOf(shown.dtype);
  if (!type || shown.data == nullptr) return false;
  if (shown.device_type != dlpack::kCpu && shown.device_type != dlpack::kCudaHost) return false;
  if (!ReadShape(shown)) return false;
  tensor_.struct_size = sizeof tensor_;
  tensor_.dtype = *type;
  tensor_.output = static_cast<std::byte*>(shown.data) + shown.byte_offset;
  tensor_.input = tensor_.output;
  tensor_.device_kind = HVD_DEVICE_HOST;
  return true;
}

}  // namespace hvd
