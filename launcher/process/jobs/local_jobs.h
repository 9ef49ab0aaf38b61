// The jobs of this user on this machine, found from processes and by querying their drivers; there
// is no stored list that could be stale.
#ifndef HVD_LAUNCHER_PROCESS_JOBS_LOCAL_JOBS_H_
#define HVD_LAUNCHER_PROCESS_JOBS_LOCAL_JOBS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/process/process_tree.h"
#include "runtime/base/status.h"

namespace hvd {

struct JobHere {
  std::string id;
  ProcessInfo driver;  // of a part: the warden here
  int64_t age_seconds = 0;
  uint32_t size = 0;  // ranks of the job; 0: no worker has been started yet
  // On all hosts; on this machine only for a part, or if the driver does not answer.
  uint32_t ranks_alive = 0;
  std::string command;  // as hvdrun was started; of a part, that of its first rank here
  bool part = false;    // its hvdrun runs on another machine
  std::string from;     // of a part: the address from which its agent was started; empty: unknown
};

// Oldest first. Waits up to half a second for drivers that do not answer (for instance stopped
// ones).
std::vector<JobHere> ListJobs();

// Merges the `parts` (one per agent here) of each job, without those of jobs in `jobs`. Pure.
std::vector<JobHere> PartsBeside(const std::vector<JobHere>& jobs,
                                 const std::vector<JobHere>& parts);

// The job id in the command line of an agent or warden, arguments terminated by zero bytes. Pure.
std::optional<std::string> AgentJobIn(std::string_view command_line);

// The job with this id, or the only one with this prefix; kInvalidArgument if there is none, or
// several. Pure.
Result<const JobHere*> JobNamed(const std::vector<JobHere>& jobs, std::string_view id_or_prefix);

// The job to view: the named one, or the only one if `id_or_prefix` is empty. kInvalidArgument if
// there is none, several, or only a part of it here. Pure.
Result<const JobHere*> JobToLookAt(const std::vector<JobHere>& jobs, std::string_view id_or_prefix);

// Where the hvdrun of a part runs: "10.0.0.1" or "another machine". Pure.
std::string Origin(const JobHere& part);

// The table that `hvdrun ps` prints. Pure.
std::string JobsTable(const std::vector<JobHere>& jobs);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_JOBS_LOCAL_JOBS_H_
