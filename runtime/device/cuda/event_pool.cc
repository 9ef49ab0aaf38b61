#include "runtime/device/cuda/event_pool.h"

#include "runtime/base/text/format.h"

namespace hvd {

// A stream waits for the state of the event at the time of the call, so the event is idle at once.
Status EventPool::Order(CuStream earlier, CuStream later) {
  const Result<CuEvent> event = Acquire();
  if (!event.ok()) return event.status();
  idle_.push_back(*event);
  Status status = calls_.Do(calls_.driver().event_record, *event, earlier);
  if (!status.ok()) return status;
  return calls_.Do(calls_.driver().stream_wait_event, later, *event, 0U);
}

Result<CuEvent> EventPool::Lend(CuStream stream) {
  const Result<CuEvent> event = Acquire();
  if (!event.ok()) return event;
  if (Status status = calls_.Do(calls_.driver().event_record, *event, stream); !status.ok()) {
    idle_.push_back(*event);
    return status;
  }
  lent_.push_back(*event);
  return event;
}

void EventPool::Release(CuEvent event) {
  if (std::erase(lent_, event) != 0) idle_.push_back(event);
}

Result<DeviceTicket> EventPool::Record(CuStream stream) {
  const Result<CuEvent> event = Acquire();
  if (!event.ok()) return event.status();
  if (Status status = calls_.Do(calls_.driver().event_record, *event, stream); !status.ok()) {
    idle_.push_back(*event);
    return status;
  }
  last_.number += 1;
  pending_.push_back({last_, *event});
  return last_;
}

Result<bool> EventPool::Ready(DeviceTicket ticket) {
  if (ticket.number > last_.number) {
    return InvalidArgument(Format("ticket {} of {} was never given: the last one is {}",
                                  ticket.number, calls_.device(), last_.number));
  }
  if (ticket.number > done_.number) {
    if (Status status = CollectDone(); !status.ok()) return status;
  }
  return ticket.number <= done_.number;
}

void EventPool::DestroyAll() {
  for (const Pending& pending : pending_) idle_.push_back(pending.event);
  idle_.insert(idle_.end(), lent_.begin(), lent_.end());
  lent_.clear();
  for (CuEvent event : idle_) calls_.driver().event_destroy(event);
  pending_.clear();
  idle_.clear();
}

Result<CuEvent> EventPool::Acquire() {
  CuEvent event = nullptr;
  if (idle_.empty()) {
    if (Status status = CollectDone(); !status.ok()) return status;
  }
  if (!idle_.empty()) {
    event = idle_.back();
    idle_.pop_back();
    return event;
  }
  Status status = calls_.Do(calls_.driver().event_create, &event, kCudaEventDisableTiming);
  if (!status.ok()) return status;
  return event;
}

Status EventPool::CollectDone() {
  while (!pending_.empty()) {
    if (!calls_.broken().ok()) return calls_.broken();
    const CudaDriver& driver = calls_.driver();
    const CuResult answer = driver.event_query(pending_.front().event);
    if (answer == kCudaNotReady) break;
    HVD_RETURN_IF_ERROR(calls_.Checked(driver.event_query.symbol, answer));
    done_ = pending_.front().ticket;
    idle_.push_back(pending_.front().event);
    pending_.pop_front();
  }
  return Status::Ok();
}

}  // namespace hvd
