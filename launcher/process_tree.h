// Ending processes for certain: by descent (this process is a subreaper, so every descendant stays below it) and by the
// job id in /proc/PID/environ (for those that escaped by being adopted elsewhere).
//
// All functions are for the main thread of the driver, agent or warden.
#ifndef HVD_LAUNCHER_PROCESS_TREE_H_
#define HVD_LAUNCHER_PROCESS_TREE_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"

namespace hvd {

struct ProcessInfo {
  pid_t pid = 0, parent = 0, session = 0;
  char state = '?';          // 'Z': ended, waits to be reaped
  uint64_t start_ticks = 0;  // tells a process from a later one of the same pid
};

// What /proc shows now.
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

// Reaps what has ended; true when no child is left, which, for a subreaper, means no descendant at all.
bool ReapAndCheckNoChildren(const std::function<void(pid_t, int status)>& on_reaped = {});

// Kills all descendants of this process and every process of the job, except `spare` and what is below and including
// `spare_trees`, again and again until none is left or `limit` has passed. True when none is left.
bool KillEverything(const std::string& job_id, const std::vector<pid_t>& spare, Duration limit,
                    const std::function<void(pid_t, int status)>& on_reaped = {},
                    const std::vector<pid_t>& spare_trees = {});

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_TREE_H_
