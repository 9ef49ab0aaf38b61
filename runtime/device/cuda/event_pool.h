// EventPool: events of the driver, made when needed and used again, and the tickets of one stream.
// Making an event costs microseconds and taking one from here nothing.
//
// The calls are made with the device's context current.
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

  // `later` goes on when the work that `earlier` has been given so far is done.
  Status Order(CuStream earlier, CuStream later);
  // Recorded in `stream`; lent until TakeBack, or DestroyAll.
  Result<CuEvent> Lend(CuStream stream);
  void TakeBack(CuEvent event);
  // The tickets are of one stream: a later one is ready after an earlier one.
  Result<DeviceTicket> Record(CuStream stream);
  Result<bool> Ready(DeviceTicket ticket);
  // Also those of tickets that are not ready.
  void DestroyAll();

 private:
  struct Pending {
    DeviceTicket ticket;
    CuEvent event;
  };

  Result<CuEvent> Take();
  Status CollectDone();

  CudaCalls& calls_;
  std::vector<CuEvent> idle_;
  std::deque<Pending> pending_;  // oldest first
  std::vector<CuEvent> lent_;
  DeviceTicket last_, done_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_EVENT_POOL_H_
