// The job's own cgroup (version 2) on this host: a folder that holds its workers and whatever they
// start, so that one write ends them all. Optional: there is none where no cgroup2 is mounted,
// where this user may not make one, or where the kernel has no cgroup.kill (before Linux 5.14).
#ifndef HVD_LAUNCHER_PROCESS_CGROUP_H_
#define HVD_LAUNCHER_PROCESS_CGROUP_H_

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

// Where a process whose /proc files read like this has its cgroup2 folder; empty when it has none.
// Pure.
std::string CgroupFolder(std::string_view mountinfo, std::string_view proc_cgroup);

// Makes the job's group below that of this process. Keep the descriptor for as long as the group is
// to stay: it has a lock, which others can see from another pid namespace. Invalid: there is none.
UniqueFd MakeCgroup(const std::string& job_id);
// The group's folder, for SpawnDescriptors; invalid when there is none.
UniqueFd OpenCgroup(const std::string& job_id);
// Kills every process in the group; nothing happens when there is none.
void KillCgroup(const std::string& job_id);
// The ids of the jobs of this user and this pid namespace that have a group below that of this
// process.
std::vector<std::string> CgroupsHere();
// The processes in the group.
std::vector<pid_t> ProcessesInCgroup(const std::string& job_id);
// Removes the empty groups of this user that nobody holds: those of jobs in containers that were
// killed, where nothing was left that could have done it.
void RemoveAbandonedCgroups();
// Removes the group as soon as no process is in it any more; gives up after `patience`.
void RemoveCgroup(const std::string& job_id, Duration patience = std::chrono::seconds(3));

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_CGROUP_H_
