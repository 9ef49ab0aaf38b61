// StagingPool: pinned host memory in power-of-two sizes. A returned piece is reused once the device
// has finished the work enqueued before its return.
//
// Call with the device's context current.
#ifndef HVD_RUNTIME_DEVICE_CUDA_STAGING_POOL_H_
#define HVD_RUNTIME_DEVICE_CUDA_STAGING_POOL_H_

#include <cstddef>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_calls.h"
#include "runtime/device/cuda/event_pool.h"
#include "runtime/device/device.h"

namespace hvd {

class StagingPool {
 public:
  // `events` issues the tickets of the stream used for all copies.
  StagingPool(CudaCalls& calls, EventPool& events) : calls_(calls), events_(events) {}
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;

  Result<std::byte*> Borrow(size_t bytes);
  Status Return(std::byte* memory, CuStream stream);
  // True if [memory, memory + bytes) lies within one lent piece.
  bool IsLent(const std::byte* memory, size_t bytes) const;
  // No copy may be in progress.
  void FreeAll();

 private:
  struct Piece {
    std::byte* memory = nullptr;
    size_t bytes = 0;
    bool lent = false;
    DeviceTicket returned;  // free when this is ready
  };

  Result<Piece*> FindFree(size_t bytes);

  CudaCalls& calls_;
  EventPool& events_;
  std::vector<Piece> pieces_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_STAGING_POOL_H_
