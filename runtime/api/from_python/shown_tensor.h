// A DLPack tensor of a framework as an hvd_tensor.
#ifndef HVD_RUNTIME_API_FROM_PYTHON_SHOWN_TENSOR_H_
#define HVD_RUNTIME_API_FROM_PYTHON_SHOWN_TENSOR_H_

#include <array>
#include <cstdint>

#include "hvd/hvd.h"
#include "runtime/api/from_python/dlpack.h"

namespace hvd {

// Copies the shape: the framework may change its own while the GIL is released.
class ShownTensor {
 public:
  static constexpr int kMostDimensions = 8;

  ShownTensor() = default;
  ShownTensor(const ShownTensor&) = delete;
  ShownTensor& operator=(const ShownTensor&) = delete;

  // Converts the tensor. False if it is not in host memory, is empty or not contiguous, has more
  // than kMostDimensions dimensions, or has a type that hvd.h lacks.
  bool Read(const dlpack::Tensor& shown);

  // The output is the input. A view of this object.
  hvd_tensor& tensor() { return tensor_; }

 private:
  bool ReadShape(const dlpack::Tensor& shown);

  hvd_tensor tensor_{};
  std::array<int64_t, kMostDimensions> extents_{};
};

}  // namespace hvd

#endif  // HVD_RUNTIME_API_FROM_PYTHON_SHOWN_TENSOR_H_
