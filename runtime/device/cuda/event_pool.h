// EventPool: CUDA events, created on demand and reused, and the tickets of one stream. Creating an
// event costs microseconds, reusing one nothing.
//
// Call with the device's context current.
#ifndef HVD_RUNTIME_DEVICE_CUDA_EVENT_POOL_H_
#define HVD_RUNTIME_DEVICE_CUDA_EVENT_POOL_H_

#include <deque>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_calls.h"
#include "runtime/device/device.h"

namespace hvd {

class EventPool {
 public:
  explicit EventPool(CudaCalls& calls) : calls_(calls) {}
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  // Makes `later` wait for the work enqueued on `earlier` so far.
  Status Order(CuStream earlier, CuStream later);
  // Returns an event recorded in `stream`, lent until Release or DestroyAll.
  Result<CuEvent> Lend(CuStream stream);
  void Release(CuEvent event);
  // All tickets are of one stream: they become ready in order.
  Result<DeviceTicket> Record(CuStream stream);
  Result<bool> Ready(DeviceTicket ticket);
  // Destroys all events, including those of tickets that are not ready.
  void DestroyAll();

 private:
  struct Pending {
    DeviceTicket ticket;
    CuEvent event;
  };

  Result<CuEvent> Acquire();
  Status CollectDone();

  CudaCalls& calls_;
  std::vector<CuEvent> idle_;
  std::deque<Pending> pending_;  // oldest first
  std::vector<CuEvent> lent_;
  DeviceTicket last_, done_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_EVENT_POOL_H_
