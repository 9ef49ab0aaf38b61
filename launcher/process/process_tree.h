// Ending all processes of a job: by descent (this process is a subreaper, so every descendant stays
// below it) and by the job id in /proc/PID/environ (for those reparented elsewhere).
//
// All functions are for the main thread of the driver, agent or warden.
#ifndef HVD_LAUNCHER_PROCESS_PROCESS_TREE_H_
#define HVD_LAUNCHER_PROCESS_PROCESS_TREE_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/process/one_process.h"
#include "runtime/base/clock.h"

namespace hvd {

// The current processes. ListPids reads a single folder only.
std::vector<pid_t> ListPids();
std::vector<ProcessInfo> ListProcesses();

// The processes below `root` that have not ended, without `root`.
std::vector<ProcessInfo> DescendantsOf(pid_t root, const std::vector<ProcessInfo>& all);

// True when the process was started with HVD_JOB_ID=`job_id`.
bool BelongsToJob(pid_t pid, const std::string& job_id);

// Sends the signal unless the pid was reused.
void SignalProcess(const ProcessInfo& process, int signal);

// Whether the kernel has pidfd_open (Linux 5.3).
bool HavePidfd();

// Makes this process the reaper of orphaned descendants.
void BecomeSubreaper();

// Reaps ended children; true if no child is left, which, for a subreaper, means no descendant.
bool ReapAndCheckNoChildren(const std::function<void(pid_t, int status)>& on_reaped = {});

// Whether this process has a child. At start-up: one inherited through exec (`tensorboard & exec
// hvdrun ...`).
bool HasChildren();

// The processes that KillEverything leaves alone.
struct Spared {
  std::vector<pid_t> processes = {};
  std::vector<pid_t> trees = {};  // including descendants
  // Set if this process inherited children through exec: its own children. Orphans may then be
  // descendants of inherited children, so any other child is spared with its tree, unless it has
  // the job's id.
  std::optional<std::vector<pid_t>> own = std::nullopt;
};

// The running processes to spare. `belongs`: whether a process is of the job. Pure.
std::set<pid_t> SparedOf(pid_t self, const Spared& spared, const std::vector<ProcessInfo>& all,
                         const std::function<bool(pid_t)>& belongs);

// Kills all descendants of this process and every process of the job, except `spared`, repeatedly
// until none is left or `limit` has passed. True if none is left.
bool KillEverything(const std::string& job_id, const Spared& spared, Duration limit,
                    const std::function<void(pid_t, int status)>& on_reaped = {});

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_PROCESS_TREE_H_
