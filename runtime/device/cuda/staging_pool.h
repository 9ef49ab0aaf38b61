// StagingPool: pinned memory of the host, in sizes of powers of two. A piece that is returned is
// lent again once the device is done with what it had been given by then.
//
// The calls are made with the device's context current.
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
  // `events` has the tickets of the stream that all copies go through.
  StagingPool(CudaCalls& calls, EventPool& events) : calls_(calls), events_(events) {}
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;

  Result<std::byte*> Borrow(size_t bytes);
  Status Return(std::byte* memory, CuStream stream);
  // True if [memory, memory + bytes) lies in one piece that is lent.
  bool IsLent(const std::byte* memory, size_t bytes) const;
  // Nothing may be under way.
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
