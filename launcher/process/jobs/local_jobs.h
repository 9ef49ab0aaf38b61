// The jobs of this user on this machine, found by looking at processes and by asking their drivers:
// there is no list that could be wrong.
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
  // On all hosts; on this machine alone in a part, and when the driver does not answer.
  uint32_t ranks_alive = 0;
  std::string command;  // as hvdrun was started; of a part, that of its first rank here
  bool part = false;    // its hvdrun runs on another machine
  std::string from;     // of a part: the address from which its agent was started; empty: unknown
};

// Oldest first. Waits for drivers that do not answer (one that is stopped, say) for half a second.
std::vector<JobHere> ListJobs();

// Of `parts`, one for each agent here, those of one job as one; and none of a job in `jobs`: it is
// listed already. Pure.
std::vector<JobHere> PartsBeside(const std::vector<JobHere>& jobs,
                                 const std::vector<JobHere>& parts);

// The job id in the command line of an agent or warden, words ended by zero bytes. Pure.
std::optional<std::string> AgentJobIn(std::string_view command_line);

// The job with this id, or with the only id that begins so; kInvalidArgument if there is none, or
// several. Pure.
Result<const JobHere*> JobNamed(const std::vector<JobHere>& jobs, std::string_view id_or_prefix);

// The job that a user wants to look at: the named one, or the only one if `id_or_prefix` is empty.
// kInvalidArgument where there is none, several, or only a part of it here. Pure.
Result<const JobHere*> JobToLookAt(const std::vector<JobHere>& jobs, std::string_view id_or_prefix);

// Where the hvdrun of a part runs, in words: "10.0.0.1" or "another machine". Pure.
std::string Origin(const JobHere& part);

// The table that `hvdrun ps` prints. Pure.
std::string JobsTable(const std::vector<JobHere>& jobs);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_JOBS_LOCAL_JOBS_H_
