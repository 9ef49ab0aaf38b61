// Ending processes for certain: by descent (this process is a subreaper, so every descendant stays
// below it) and by the job id in /proc/PID/environ (for those that escaped by being adopted
// elsewhere).
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

// The processes that /proc shows now. The first reads one folder alone.
std::vector<pid_t> ListPids();
std::vector<ProcessInfo> ListProcesses();

// The processes below `root` that have not ended, without `root`.
std::vector<ProcessInfo> DescendantsOf(pid_t root, const std::vector<ProcessInfo>& all);

// True when the process was started with HVD_JOB_ID=`job_id`.
bool BelongsToJob(pid_t pid, const std::string& job_id);

// Sends the signal unless the pid belongs to another process by now.
void SignalProcess(const ProcessInfo& process, int signal);

// Whether the kernel lets us hold on to one process (Linux 5.3).
bool HavePidfd();

// Makes this process the one that inherits orphaned descendants.
void BecomeSubreaper();

// Reaps what has ended; true when no child is left, which, for a subreaper, means no descendant at
// all.
bool ReapAndCheckNoChildren(const std::function<void(pid_t, int status)>& on_reaped = {});

// Whether this process has a child. Asked at its beginning: one that it inherited through exec
// (`tensorboard & exec hvdrun ...`).
bool HasChildren();

// The processes that KillEverything leaves alone.
struct Spared {
  std::vector<pid_t> processes = {};
  std::vector<pid_t> trees = {};  // with all that is below them
  // Set when this process inherited children through exec: its own ones. A process that loses its
  // parents may come from a stranger then, so any other child is spared with its tree, unless it
  // carries the job's id.
  std::optional<std::vector<pid_t>> own = std::nullopt;
};

// The processes that are spared, of those that run. `belongs` tells a process of the job. Pure.
std::set<pid_t> SparedOf(pid_t self, const Spared& spared, const std::vector<ProcessInfo>& all,
                         const std::function<bool(pid_t)>& belongs);

// Kills all descendants of this process and every process of the job, except those that are spared,
// again and again until none is left or `limit` has passed. True when none is left.
bool KillEverything(const std::string& job_id, const Spared& spared, Duration limit,
                    const std::function<void(pid_t, int status)>& on_reaped = {});

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_PROCESS_TREE_H_
