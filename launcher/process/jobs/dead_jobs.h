// Jobs of this user on this machine whose hvdrun, warden and agent were all killed at once: nobody
// was left to end what they had started. The next hvdrun does, and hvdrun ps, stop and doctor.
#ifndef HVD_LAUNCHER_PROCESS_JOBS_DEAD_JOBS_H_
#define HVD_LAUNCHER_PROCESS_JOBS_DEAD_JOBS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/process/jobs/job_place.h"
#include "launcher/process/process_tree.h"

namespace hvd {

// A process of this user that carries a job's id.
struct JobProcess {
  ProcessInfo process;
  std::string job;                // its HVD_JOB_ID
  std::optional<JobPlace> place;  // its HVD_JOB_PLACE
  bool keeps_job = false;         // an agent or a warden, or perhaps one
};

// By job, the processes of dead ones. A job is dead here when it began in this very place and no
// agent or warden of it runs. Of its processes those are left over that lost their parents: the
// topmost was handed to one of the agent's former parents. One that somebody else has started with
// the job's environment (sbatch, at) has a live parent of another kind, and is spared with all
// below it. Pure.
std::map<std::string, std::vector<ProcessInfo>> LeftOver(const std::vector<JobProcess>& seen,
                                                         const JobPlace& here);

// Ends what dead jobs have left, but for the job that the calling process is part of, and removes
// their cgroups. Returns a sentence for each that had processes. Takes as long as a look at all
// processes; with leftovers, 3 s at most.
std::vector<std::string> EndDeadJobs();

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_JOBS_DEAD_JOBS_H_
