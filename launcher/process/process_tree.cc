#include "launcher/process/process_tree.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <set>

#include "launcher/process/cgroup.h"
#include "launcher/process/one_process.h"
#include "launcher/process/proc_file.h"
#include "runtime/base/kernel_features.h"
#include "runtime/base/text/number_text.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

constexpr int kLookAgainMs = 2;

}  // namespace

std::vector<pid_t> ListPids() {
  std::vector<pid_t> all;
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return all;
  while (const dirent* entry = ::readdir(proc)) {
    if (const auto pid = ParseWhole<pid_t>(entry->d_name)) all.push_back(*pid);
  }
  ::closedir(proc);
  return all;
}

std::vector<ProcessInfo> ListProcesses() {
  std::vector<ProcessInfo> all;
  for (pid_t pid : ListPids()) {
    if (std::optional<ProcessInfo> info = LookAtProcess(pid)) all.push_back(*info);
  }
  return all;
}

std::vector<ProcessInfo> DescendantsOf(pid_t root, const std::vector<ProcessInfo>& all) {
  std::vector<ProcessInfo> found;
  std::set<pid_t> family = {root};
  for (bool grew = true; grew;) {
    grew = false;
    for (const ProcessInfo& process : all) {
      if (!family.contains(process.parent) || !family.insert(process.pid).second) continue;
      grew = true;
      if (process.state != 'Z' && process.state != 'X') found.push_back(process);
    }
  }
  return found;
}

bool BelongsToJob(pid_t pid, const std::string& job_id) {
  std::string wanted = "HVD_JOB_ID=" + job_id;
  wanted.push_back('\0');
  std::string environment = ReadProcFile(pid, "environ");
  size_t at = environment.find(wanted);
  return at != std::string::npos && (at == 0 || environment[at - 1] == '\0');
}

void SignalProcess(const ProcessInfo& process, int signal) {
#ifdef SYS_pidfd_open
  errno = ENOSYS;
  UniqueFd fd(Without("pidfd") ? -1 : static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  if (fd.valid()) {
    // The descriptor refers to one process; only now is it certain which.
    std::optional<ProcessInfo> now = LookAtProcess(process.pid);
    if (!now || now->start_ticks != process.start_ticks) return;
    if (::syscall(SYS_pidfd_send_signal, fd.get(), signal, nullptr, 0) == 0 || errno == ESRCH)
      return;
  } else if (errno == ESRCH) {
    return;
  }
#endif
  std::optional<ProcessInfo> now = LookAtProcess(process.pid);
  if (now && now->start_ticks == process.start_ticks) ::kill(process.pid, signal);
}

bool HavePidfd() {
#ifdef SYS_pidfd_open
  if (Without("pidfd")) return false;
  UniqueFd self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  return self.valid();
#else
  return false;
#endif
}

void BecomeSubreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

bool ReapAndCheckNoChildren(const std::function<void(pid_t, int)>& on_reaped) {
  while (true) {
    int status = 0;
    pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid > 0) {
      if (on_reaped) on_reaped(pid, status);
    } else if (pid == 0) {
      return false;
    } else if (errno != EINTR) {
      return true;
    }
  }
}

bool HasChildren() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

std::set<pid_t> SparedOf(pid_t self, const Spared& spared, const std::vector<ProcessInfo>& all,
                         const std::function<bool(pid_t)>& belongs) {
  std::set<pid_t> found(spared.processes.begin(), spared.processes.end());
  std::vector<pid_t> trees = spared.trees;
  if (spared.own) {
    const std::set<pid_t> own(spared.own->begin(), spared.own->end());
    for (const ProcessInfo& process : all) {
      if (process.parent == self && !own.contains(process.pid) && !belongs(process.pid))
        trees.push_back(process.pid);
    }
  }
  for (pid_t tree : trees) {
    found.insert(tree);
    for (const ProcessInfo& below : DescendantsOf(tree, all)) found.insert(below.pid);
  }
  return found;
}

bool KillEverything(const std::string& job_id, const Spared& spared, Duration limit,
                    const std::function<void(pid_t, int)>& on_reaped) {
  KillCgroup(job_id);
  TimePoint deadline = SteadyNow() + limit;
  pid_t self = ::getpid();
  auto belongs = [&](pid_t pid) { return BelongsToJob(pid, job_id); };
  while (true) {
    std::vector<ProcessInfo> all = ListProcesses();
    std::vector<ProcessInfo> targets = DescendantsOf(self, all);
    for (const ProcessInfo& process : all) {
      if (process.state != 'Z' && process.pid != self && belongs(process.pid)) {
        targets.push_back(process);
      }
    }
    std::set<pid_t> alone = SparedOf(self, spared, all, belongs);
    std::erase_if(targets, [&](const ProcessInfo& p) { return alone.contains(p.pid); });
    for (const ProcessInfo& process : targets) SignalProcess(process, SIGKILL);
    ReapAndCheckNoChildren(on_reaped);
    if (targets.empty()) return true;
    if (SteadyNow() >= deadline) return false;
    ::poll(nullptr, 0, kLookAgainMs);  // freeing a killed process takes the kernel a moment
  }
}

}  // namespace hvd
