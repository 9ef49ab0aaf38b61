// The jobs of this user on this machine, found by looking at processes: there is no list that could
// be wrong.
#ifndef HVD_LAUNCHER_JOBS_LOCAL_JOBS_H_
#define HVD_LAUNCHER_JOBS_LOCAL_JOBS_H_

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
  ProcessInfo driver;
  int64_t age_seconds = 0;
  uint32_t size = 0;         // ranks of the job; 0: no worker has been started yet
  uint32_t ranks_alive = 0;  // on this machine
  std::string command;       // as hvdrun was started
};

// Oldest first.
std::vector<JobHere> ListJobs();

// The job id in the command line of an agent or warden, words ended by zero bytes. Pure.
std::optional<std::string> AgentJobIn(std::string_view command_line);

// The job with this id, or with the only id that begins so; kInvalidArgument if there is none, or
// several. Pure.
Result<const JobHere*> JobNamed(const std::vector<JobHere>& jobs, std::string_view id_or_prefix);

// What `hvdrun ps` prints. Pure.
std::string JobsTable(const std::vector<JobHere>& jobs);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOBS_LOCAL_JOBS_H_
