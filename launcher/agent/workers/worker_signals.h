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
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/agent/workers/worker_set.h"
#include "launcher/process/one_process.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"

namespace hvd {

// SignalReceiver: the process of a worker to which a signal goes that warns (SIGUSR1, SIGUSR2): the
// rank's own one, also where a shell, conda or uv started it, and only one that has a handler. The
// default action of these signals is to end a process.

// `status`: the text of /proc/PID/status, or of a thread's. Pure.
bool BlocksSignal(std::string_view status, int signal);

// Whether it is a program that starts another one and passes every signal on to it, which may end
// that: uv, and the init processes of containers. `status`: the text of /proc/PID/status. Pure.
bool PassesSignalsOn(std::string_view status);

// Whether the signal does not end the process: it has a handler, or all of its threads block the
// signal (sigwait, signalfd). False for a process that passes signals on: the one that it started
// decides.
bool SurvivesSignal(pid_t pid, int signal);

// Between `worker`, which the agent started, and `rank`, the process below it that called
// hvd.init(), the first that handles the signal. Without such a rank (0) the topmost one below the
// worker: the processes that a rank starts, such as workers of a DataLoader, have its handlers,
// too. Nothing: none handles it. Pure.
std::optional<ProcessInfo> SignalReceiver(pid_t worker, pid_t rank,
                                          const std::vector<ProcessInfo>& all,
                                          const std::function<bool(pid_t)>& handles);

class WorkerSignals {
 public:
  // `on_reaped` learns of every child that KillAll reaps.
  WorkerSignals(WorkerSet& workers, std::string job_id,
                std::function<void(pid_t, int status)> on_reaped)
      : workers_(workers), job_id_(std::move(job_id)), on_reaped_(std::move(on_reaped)) {}

  void Handle(const SignalWorkers& message);
  void Handle(const SignalWorker& message);
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
