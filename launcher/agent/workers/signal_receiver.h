// SignalReceiver: the process of a worker to which a signal goes that warns (SIGUSR1, SIGUSR2): the
// rank's own one, also where a shell, conda or uv started it, and only one that has a handler. The
// default action of these signals is to end a process.
#ifndef HVD_LAUNCHER_AGENT_WORKERS_SIGNAL_RECEIVER_H_
#define HVD_LAUNCHER_AGENT_WORKERS_SIGNAL_RECEIVER_H_

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "launcher/process/one_process.h"

namespace hvd {

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

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_WORKERS_SIGNAL_RECEIVER_H_
