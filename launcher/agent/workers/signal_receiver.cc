#include "launcher/agent/workers/signal_receiver.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

#include "launcher/process/proc_file.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

// Of a line such as "SigCgt:\t0000000180014a07".
bool IsInMask(std::string_view status, std::string_view name, int signal) {
  const size_t at = status.find(name);
  if (at == std::string_view::npos) return false;
  std::string_view mask = status.substr(at + name.size());
  mask = mask.substr(0, mask.find('\n'));
  mask.remove_prefix(std::min(mask.find_first_not_of(" \t"), mask.size()));
  return (ParseWhole<uint64_t>(mask, 16).value_or(0) >> (signal - 1) & 1) != 0;
}

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

bool CatchesSignal(std::string_view status, int signal) {
  return IsInMask(status, "\nSigCgt:", signal);
}

bool BlocksSignal(std::string_view status, int signal) {
  return IsInMask(status, "\nSigBlk:", signal);
}

bool HandlesSignal(pid_t pid, int signal) {
  return CatchesSignal(ReadProcFile(pid, "status"), signal) || AllThreadsBlock(pid, signal);
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
