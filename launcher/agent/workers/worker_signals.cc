#include "launcher/agent/workers/worker_signals.h"

#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "launcher/agent/workers/signal_receiver.h"
#include "launcher/process/process_tree.h"

namespace hvd {
namespace {

constexpr Duration kKillLimit = std::chrono::seconds(3);
constexpr Duration kSameSignal = std::chrono::seconds(1);

}  // namespace

void WorkerSignals::Take(const SignalWorkers& message) {
  if (message.signal == SIGSTOP || message.signal == SIGCONT) paused_ = message.signal == SIGSTOP;
  SignalAll(message.signal);
}

// A worker that is ended takes with it what it has started.
void WorkerSignals::Take(const SignalWorker& message) {
  const std::optional<uint32_t> slot = workers_.SlotOf(message.rank);
  if (!slot || !workers_.running(*slot)) return;
  if (message.signal == SIGKILL) {
    for (const ProcessInfo& process : DescendantsOf(workers_.pid(*slot), ListProcesses()))
      SignalProcess(process, SIGKILL);
  }
  workers_.Signal(*slot, message.signal);
  if (message.signal != SIGKILL) workers_.Signal(*slot, SIGCONT);
}

void WorkerSignals::SignalAll(int signal) {
  if (signal == SIGKILL) return KillAll();
  workers_.Signal(signal);
  if (signal == SIGSTOP || signal == SIGCONT) {
    for (const ProcessInfo& process : DescendantsOf(::getpid(), ListProcesses()))
      SignalProcess(process, signal);
  } else {
    SignalAll(SIGCONT);  // a process that is stopped gets no other signal
  }
}

SignalForwarded WorkerSignals::ForwardTo(const ForwardSignal& message,
                                         const std::function<pid_t(uint32_t slot)>& rank_pid,
                                         TimePoint now) {
  const int signal = message.signal;
  const bool by_driver = message.number != 0;
  const auto last = forwarded_.find(signal);
  if (last != forwarded_.end() && last->second.by_driver != by_driver &&
      now < last->second.at + kSameSignal)
    return {message.number, signal, last->second.ranks};
  const std::vector<ProcessInfo> all = ListProcesses();
  uint32_t ranks = 0;
  for (uint32_t slot = 0; slot < workers_.start().ranks.slots.size(); ++slot) {
    if (!workers_.running(slot)) continue;
    const std::optional<ProcessInfo> receiver =
        SignalReceiver(workers_.pid(slot), rank_pid(slot), all,
                       [signal](pid_t pid) { return SurvivesSignal(pid, signal); });
    if (!receiver) continue;
    SignalProcess(*receiver, signal);
    ++ranks;
  }
  forwarded_[signal] = {now, by_driver, ranks};
  return {message.number, signal, ranks};
}

void WorkerSignals::KillAll() {
  workers_.NoteKilling();
  KillEverything(job_id_, {.processes = {::getppid()}}, kKillLimit, on_reaped_);
}

}  // namespace hvd
