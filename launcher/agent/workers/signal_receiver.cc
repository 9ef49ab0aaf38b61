#include "launcher/agent/workers/signal_receiver.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

#include "launcher/process/proc_file.h"
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

// Nothing unless it is `worker` or below it.
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

}  // namespace hvd
