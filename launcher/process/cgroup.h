// The job's own cgroup (version 2) on this host: holds its workers and their descendants, so that
// one write kills them all. Optional: not available without a mounted cgroup2, without permission
// to create one, or without cgroup.kill (before Linux 5.14).
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

// The cgroup2 folder of a process, from its /proc files; empty: none. Pure.
std::string CgroupFolder(std::string_view mountinfo, std::string_view proc_cgroup);

// Creates the job's group below that of this process. Keep the descriptor open while the group is
// in use: it holds a lock that is visible from other pid namespaces. Invalid: not available.
UniqueFd MakeCgroup(const std::string& job_id);
// The group's folder, for SpawnDescriptors; invalid: none.
UniqueFd OpenCgroup(const std::string& job_id);
// Kills every process in the group, if it exists.
void KillCgroup(const std::string& job_id);
// The ids of the jobs of this user and this pid namespace that have a group below that of this
// process.
std::vector<std::string> CgroupsHere();
// The processes in the group.
std::vector<pid_t> ProcessesInCgroup(const std::string& job_id);
// Removes this user's empty, unlocked groups, left by jobs in containers that were killed as a
// whole.
void RemoveAbandonedCgroups();
// Removes the group once it is empty; gives up after `patience`.
void RemoveCgroup(const std::string& job_id, Duration patience = std::chrono::seconds(3));

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_CGROUP_H_
