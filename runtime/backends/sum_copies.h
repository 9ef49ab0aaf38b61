// SumCopies: copies into the input of a sum between hosts and out of its output, made part by part
// while other parts are under way. For tensors that travel together.
#ifndef HVD_RUNTIME_BACKENDS_SUM_COPIES_H_
#define HVD_RUNTIME_BACKENDS_SUM_COPIES_H_

#include <cstddef>

namespace hvd {

// Called by the thread that makes the sum.
class SumCopies {
 public:
  virtual ~SumCopies() = default;
  // Puts these elements into the input. Each is asked for once, before it is read.
  virtual void Fill(size_t first, size_t count) = 0;
  // These elements of the output are as they shall be. Each is told once.
  virtual void Take(size_t first, size_t count) = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_SUM_COPIES_H_
