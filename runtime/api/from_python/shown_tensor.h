// A tensor that a framework shows, as hvd.h has it.
#ifndef HVD_RUNTIME_API_FROM_PYTHON_SHOWN_TENSOR_H_
#define HVD_RUNTIME_API_FROM_PYTHON_SHOWN_TENSOR_H_

#include <array>
#include <cstdint>

#include "hvd/hvd.h"
#include "runtime/api/from_python/dlpack.h"

namespace hvd {

// Its extents are a copy: the framework may change its own while the interpreter lock is free.
class ShownTensor {
 public:
  static constexpr int kMostDimensions = 8;

  ShownTensor() = default;
  ShownTensor(const ShownTensor&) = delete;
  ShownTensor& operator=(const ShownTensor&) = delete;

  // False when it is not in the processor's memory, has no elements, more dimensions than this or
  // elements that do not lie in a row, or is of a type that hvd.h does not have.
  bool Take(const dlpack::Tensor& shown);

  // Its output is its input. A view of this object.
  hvd_tensor& tensor() { return tensor_; }

 private:
  bool TakeShape(const dlpack::Tensor& shown);

  hvd_tensor tensor_{};
  std::array<int64_t, kMostDimensions> extents_{};
};

}  // namespace hvd

#endif  // HVD_RUNTIME_API_FROM_PYTHON_SHOWN_TENSOR_H_
