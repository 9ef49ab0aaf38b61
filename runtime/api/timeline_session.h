// TimelineSession: the timeline written by a rank itself, because the script called
// hvd.start_timeline() or HOROVOD_TIMELINE names a file and no hvdrun collects it. Rank 0 writes;
// it reads the trace rings of all ranks of its host from the job page.
//
// A thread reads the rings while a file is open. Thread-safe.
#ifndef HVD_RUNTIME_API_TIMELINE_SESSION_H_
#define HVD_RUNTIME_API_TIMELINE_SESSION_H_

#include <condition_variable>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/trace/ring_reader.h"
#include "runtime/trace/tick_clock.h"
#include "runtime/trace/timeline_writer.h"

namespace hvd {

// The timeline settings in the environment when the world begins.
struct TimelineChoice {
  std::string path;  // HOROVOD_TIMELINE names this file; empty: none
  bool mark_cycles = false;
  bool may_start = false;  // hvd.start_timeline() is allowed
};
TimelineChoice TimelineChoiceFromEnv();

class TimelineSession {
 public:
  // `world` outlives this object.
  explicit TimelineSession(const World& world);
  ~TimelineSession() { Stop(); }
  TimelineSession(const TimelineSession&) = delete;

  // Starts writing events to this file, which is truncated; no-op if it is already being written.
  // Returns when the ranks of this host are tracing. Does nothing on ranks other than 0. Not ok:
  // the file cannot be written.
  Status Start(const std::string& path, bool mark_cycles);
  // Writes everything recorded so far and completes the file.
  void Stop();

 private:
  struct Reader {
    uint32_t rank = 0;
    RingReader ring;
  };
  void Run();
  void Drain() HVD_REQUIRES(mutex_);
  void Close() HVD_REQUIRES(mutex_);

  const World& world_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::unique_ptr<TimelineWriter> writer_ HVD_GUARDED_BY(mutex_);
  std::vector<Reader> readers_ HVD_GUARDED_BY(mutex_);
  TickClock clock_ HVD_GUARDED_BY(mutex_);
  std::vector<TraceRecord> records_ HVD_GUARDED_BY(mutex_);  // scratch
  bool stopping_ HVD_GUARDED_BY(mutex_) = false;
  Mutex thread_mutex_;  // serialises Start and Stop
  std::thread thread_ HVD_GUARDED_BY(thread_mutex_);
};

}  // namespace hvd

#endif  // HVD_RUNTIME_API_TIMELINE_SESSION_H_
