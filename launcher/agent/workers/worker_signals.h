// WorkerSignals: sends signals to the workers of this host and to the processes that they have
// started, up to killing everything below this agent.
//
// For the main thread. The workers outlive this object.
#ifndef HVD_LAUNCHER_AGENT_WORKERS_WORKER_SIGNALS_H_
#define HVD_LAUNCHER_AGENT_WORKERS_WORKER_SIGNALS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "launcher/agent/workers/worker_set.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"

namespace hvd {

class WorkerSignals {
 public:
  // `on_reaped` learns of every child that KillAll reaps.
  WorkerSignals(WorkerSet& workers, std::string job_id,
                std::function<void(pid_t, int status)> on_reaped)
      : workers_(workers), job_id_(std::move(job_id)), on_reaped_(std::move(on_reaped)) {}

  void Take(const SignalWorkers& message);
  void Take(const SignalWorker& message);
  // To all workers; SIGSTOP and SIGCONT to everything below this agent.
  void SignalAll(int signal);
  // Kills everything below this agent; the exits come in as usual.
  void KillAll();
  // A signal that warns, to the own process of every rank that handles it; how many do. It may come
  // from the driver and, where it went to a whole step of a scheduler, to this agent itself: of the
  // two within a second the later one does nothing. `links`: has PidOf(slot), the process of a slot
  // that called hvd.init(), or 0.
  template <typename Links>
  SignalForwarded Forward(const ForwardSignal& message, const Links& links, TimePoint now) {
    return ForwardTo(
        message, [&links](uint32_t slot) { return links.PidOf(slot); }, now);
  }
  // Between SIGSTOP and SIGCONT of the driver.
  bool paused() const { return paused_; }

 private:
  SignalForwarded ForwardTo(const ForwardSignal& message,
                            const std::function<pid_t(uint32_t slot)>& rank_pid, TimePoint now);

  WorkerSet& workers_;
  const std::string job_id_;
  const std::function<void(pid_t, int status)> on_reaped_;
  bool paused_ = false;
  struct Forwarded {
    TimePoint at{};
    bool by_driver = false;
    uint32_t ranks = 0;
  };
  std::map<int, Forwarded> forwarded_;  // by signal: the last one
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_WORKERS_WORKER_SIGNALS_H_
