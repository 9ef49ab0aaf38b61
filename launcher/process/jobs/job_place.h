// Where a job runs, in the environment of its workers (HVD_JOB_PLACE) along with the job's id. The
// id alone is not enough: mpirun and sbatch propagate environments to other hosts and into other
// jobs.
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
  uid_t user = 0;             // of its agent
  std::vector<pid_t>
      parents;  // of the agent, nearest first: the kernel reparents orphans to one of them

  bool SameAs(const JobPlace& other) const {
    return boot == other.boot && pid_namespace == other.pid_namespace && user == other.user;
  }
};

// The place of the calling process. Nothing if /proc is unavailable or of another pid namespace.
std::optional<JobPlace> PlaceHere();

// Pure.
std::string JobPlaceText(const JobPlace& place);
std::optional<JobPlace> ParseJobPlace(std::string_view text);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_JOBS_JOB_PLACE_H_
