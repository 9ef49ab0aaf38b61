#include "launcher/agent/workers/worker_signals.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "launcher/process/proc_file.h"
#include "launcher/process/process_tree.h"
#include "launcher/process/thread_state.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

bool AllThreadsBlock(pid_t pid, int signal) {
  std::error_code error;
  bool any = false;
  for (std::filesystem::directory_iterator thread(Format("/proc/{}/task", pid), error), end;
       !error && thread != end; thread.increment(error)) {
    if (!BlocksSignal(ReadSmallFile(thread->path().string() + "/status"), signal)) return false;
    any = true;
  }
  return any && !error;
}

// Empty unless the rank is `worker` or below it.
std::vector<ProcessInfo> PathTo(pid_t rank, pid_t worker, const std::vector<ProcessInfo>& all) {
  std::vector<ProcessInfo> path;
  for (pid_t pid = rank; path.size() < all.size();) {
    const auto process = std::ranges::find(all, pid, &ProcessInfo::pid);
    if (process == all.end()) return {};
    path.insert(path.begin(), *process);
    if (pid == worker) return path;
    pid = process->parent;
  }
  return {};
}

std::vector<ProcessInfo> ChildrenOf(const std::vector<ProcessInfo>& parents,
                                    const std::vector<ProcessInfo>& all) {
  std::vector<ProcessInfo> children;
  for (const ProcessInfo& process : all) {
    if (std::ranges::find(parents, process.parent, &ProcessInfo::pid) != parents.end())
      children.push_back(process);
  }
  return children;
}

}  // namespace

bool BlocksSignal(std::string_view status, int signal) {
  constexpr std::string_view kField = "\nSigBlk:\t";
  const size_t at = status.find(kField);
  if (at == std::string_view::npos) return false;
  const auto mask = ParseWhole<uint64_t>(status.substr(at + kField.size(), 16), 16);
  return (mask.value_or(0) >> (signal - 1) & 1) != 0;
}

bool PassesSignalsOn(std::string_view status) {
  constexpr std::string_view kField = "Name:\t";
  constexpr std::string_view kForwarders[] = {"uv", "tini", "dumb-init", "docker-init",
                                              "catatonit"};
  if (!status.starts_with(kField)) return false;
  status.remove_prefix(kField.size());
  return std::ranges::find(kForwarders, status.substr(0, status.find('\n'))) !=
         std::end(kForwarders);
}

bool SurvivesSignal(pid_t pid, int signal) {
  if (PassesSignalsOn(ReadProcFile(pid, "status"))) return false;
  return HandlesSignal(pid, signal) || AllThreadsBlock(pid, signal);
}

std::optional<ProcessInfo> SignalReceiver(pid_t worker, pid_t rank,
                                          const std::vector<ProcessInfo>& all,
                                          const std::function<bool(pid_t)>& handles) {
  const auto does = [&](const ProcessInfo& process) {
    return process.state != 'Z' && handles(process.pid);
  };
  if (const std::vector<ProcessInfo> path = PathTo(rank, worker, all); !path.empty()) {
    const auto first = std::ranges::find_if(path, does);
    return first == path.end() ? std::nullopt : std::optional(*first);
  }
  std::vector<ProcessInfo> level = PathTo(worker, worker, all);
  for (size_t depth = 0; !level.empty() && depth < all.size(); ++depth) {
    const auto first = std::ranges::find_if(level, does);
    if (first != level.end()) return *first;
    level = ChildrenOf(level, all);
  }
  return std::nullopt;
}

namespace {

constexpr Duration kKillLimit = std::chrono::seconds(3);
constexpr Duration kSameSignal = std::chrono::seconds(1);

}  // namespace

void WorkerSignals::Handle(const SignalWorkers& message) {
  if (message.signal == SIGSTOP || message.signal == SIGCONT) paused_ = message.signal == SIGSTOP;
  SignalAll(message.signal);
}

// Ending a worker also ends the processes that it has started.
void WorkerSignals::Handle(const SignalWorker& message) {
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
    SignalAll(SIGCONT);  // a stopped process receives no other signal
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
