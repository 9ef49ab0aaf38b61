// SumCopies: copies into the input of a sum between hosts and out of its output, part by part while
// other parts are in flight. For fused tensors.
#ifndef HVD_RUNTIME_BACKENDS_SUM_COPIES_H_
#define HVD_RUNTIME_BACKENDS_SUM_COPIES_H_

#include <cstddef>

namespace hvd {

// Called by the thread that computes the sum.
class SumCopies {
 public:
  virtual ~SumCopies() = default;
  // Copies these elements into the input. Called once for each, before it is read.
  virtual void Fill(size_t first, size_t count) = 0;
  // These elements of the output are final. Called once for each.
  virtual void Deliver(size_t first, size_t count) = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_SUM_COPIES_H_
