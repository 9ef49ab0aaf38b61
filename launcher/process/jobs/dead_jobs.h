// Jobs of this user on this machine whose hvdrun, warden and agent were all killed, so that their
// processes were left behind. The next hvdrun ends them, as do hvdrun ps, stop and doctor.
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
  bool keeps_job = false;         // it is, or may be, an agent or a warden
};

// By job, the processes left by dead jobs. A job is dead if it began in `here` and none of its
// agents or wardens runs. Its leftover processes are those that were orphaned: the topmost was
// reparented to one of the agent's former parents. A process started by something else with the
// job's environment (sbatch, at) has another live parent, and is spared with its descendants. Pure.
std::map<std::string, std::vector<ProcessInfo>> LeftOver(const std::vector<JobProcess>& seen,
                                                         const JobPlace& here);

// Kills the processes left by dead jobs, except of the job that the calling process belongs to, and
// removes their cgroups. Returns a sentence for each job that had any. Scans all processes; with
// leftovers, takes at most 3 s.
std::vector<std::string> EndDeadJobs();

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_JOBS_DEAD_JOBS_H_
