// Where a job runs, as far as one process can tell of another: in the environment of its workers
// (HVD_JOB_PLACE), beside the job's id. An id alone proves little: mpirun and sbatch carry
// environments to other hosts and into other jobs.
#ifndef HVD_LAUNCHER_PROCESS_JOBS_JOB_PLACE_H_
#define HVD_LAUNCHER_PROCESS_JOBS_JOB_PLACE_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

struct JobPlace {
  std::string boot;           // the kernel's boot id
  std::string pid_namespace;  // its number
  uid_t user = 0;             // whose agent it is
  std::vector<pid_t>
      parents;  // of the agent, the nearest first: the kernel hands orphans to one of them

  bool SameAs(const JobPlace& other) const {
    return boot == other.boot && pid_namespace == other.pid_namespace && user == other.user;
  }
};

// That of the calling process. Nothing when /proc does not tell, or belongs to another pid
// namespace.
std::optional<JobPlace> PlaceHere();

// Pure.
std::string JobPlaceText(const JobPlace& place);
std::optional<JobPlace> ParseJobPlace(std::string_view text);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_JOBS_JOB_PLACE_H_
