// EventQueue: the events of a job, handled one after another: events caused by the handling of one
// wait until that is done.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_DRIVER_EVENT_QUEUE_H_
#define HVD_LAUNCHER_DRIVER_EVENT_QUEUE_H_

#include <deque>
#include <functional>
#include <utility>

#include "launcher/job/job.h"

namespace hvd {

class EventQueue {
 public:
  explicit EventQueue(std::function<void(const JobEvent&)> handle) : handle_(std::move(handle)) {}

  // Handles the event at once, or, if another is being handled, after those already queued.
  void Push(JobEvent event) {
    events_.push_back(std::move(event));
    if (std::exchange(draining_, true)) return;
    for (; !events_.empty(); events_.pop_front()) handle_(events_.front());
    draining_ = false;
  }

 private:
  const std::function<void(const JobEvent&)> handle_;
  std::deque<JobEvent> events_;  // the first one is being handled
  bool draining_ = false;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_EVENT_QUEUE_H_
