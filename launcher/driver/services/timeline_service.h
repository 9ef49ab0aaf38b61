// TimelineService: the timeline of a job as the driver writes it: records of all hosts on the
// driver's clock, in a file that a thread of its own writes. A slow disk blocks nothing else: an
// agent sends more only after its records are in the file; meanwhile its rings overwrite the oldest
// events and count them.
//
// The public calls come from one thread.
#ifndef HVD_LAUNCHER_DRIVER_SERVICES_TIMELINE_SERVICE_H_
#define HVD_LAUNCHER_DRIVER_SERVICES_TIMELINE_SERVICE_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "launcher/job/host_records/host_clock.h"
#include "launcher/live/host_offset.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/trace/timeline_writer.h"

namespace hvd {

class TimelineService {
 public:
  // Run on the thread that writes, none after Close. `taken`: the agent of the host may send so
  // many bytes more. `failed`, once: the reason for which the file gets no more events.
  struct Callbacks {
    std::function<void(uint32_t host, uint64_t bytes)> taken;
    std::function<void(const std::string& sentence)> failed;
  };
  static Result<std::unique_ptr<TimelineService>> Open(const TimelineOptions& options,
                                                       Callbacks callbacks);
  ~TimelineService() { (void)Close(); }
  TimelineService(const TimelineService&) = delete;

  // Writes the queued records, unless the disk takes too long. Not ok: the reason why the file
  // lacks events, if that was not said before. Nothing may be taken afterwards.
  Status Close();

  void Add(uint32_t host, const std::string& name, const TraceBegun& begun, const HostClock& clock);
  void Add(uint32_t host, const std::string& name, const TraceRecords& records,
           const HostClock& clock);

 private:
  // Shared with the thread, which is left behind where the disk does not answer.
  struct Queue;
  explicit TimelineService(std::shared_ptr<Queue> queue) : queue_(std::move(queue)) {}
  static void Run(const std::shared_ptr<Queue>& queue);
  void Push(std::function<void(TimelineWriter&)> work);

  std::shared_ptr<Queue> queue_;
  std::map<uint32_t, HostOffset> offsets_;
  struct WrittenClock {
    int64_t offset_ns = 0;
    TimePoint at{};
  };
  std::map<uint32_t, WrittenClock> clocks_;  // by rank: what the file says about its clock
  std::thread thread_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_SERVICES_TIMELINE_SERVICE_H_
