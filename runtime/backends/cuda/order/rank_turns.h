// RankTurns: the single order in which this rank gives its GPUs the batches of all its process
// sets: which is next, and that a communicator's kernels begin after those of the communicator
// before, also on the GPU, which may have no room for the kernels of two. One thread.
#ifndef HVD_RUNTIME_BACKENDS_CUDA_ORDER_RANK_TURNS_H_
#define HVD_RUNTIME_BACKENDS_CUDA_ORDER_RANK_TURNS_H_

#include <cstdint>
#include <map>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_device.h"

namespace hvd {

class RankTurns {
 public:
  // The turn of the next batch to be given (turn_cells.h).
  uint64_t next() const { return next_; }
  void Pass() { ++next_; }

  // A batch begins in the queue of `queue`, which outlives this.
  Status Follow(CudaDevice& queue) {
    CudaDevice* before = std::exchange(last_[queue.place()], &queue);
    if (before == nullptr || before == &queue) return Status::Ok();
    return before->With([&queue](CuStream stream) { return queue.BeginAfter(stream); });
  }

 private:
  uint64_t next_ = 1;
  std::map<uint64_t, CudaDevice*> last_;  // by GPU
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_ORDER_RANK_TURNS_H_
