// hvdrun forget JOB: removes the kept output of a detached job that has ended.
#include "cmd/hvdrun/verbs.h"
#include "launcher/detached/keeper.h"

namespace hvd {

int ForgetVerb(const std::vector<std::string>& args) {
  if (args.size() != 1 || (args[0].starts_with('-') && args[0] != "--all"))
    return FailVerb("forget", "takes the name of one detached job that has ended, or --all");
  if (args[0] == "--all") {
    const Result<std::vector<DetachedJob>> jobs = DetachedJobs();
    if (!jobs.ok()) return FailVerb("forget", jobs.status().message());
    ForgetOldJobs(*jobs, 0, -1e18);
    for (const DamagedJob& damaged : DamagedJobs()) {
      if (Status removed = RemoveDamagedJob(damaged); !removed.ok())
        VerbLine("forget", removed.message());
    }
    return 0;
  }
  for (const DamagedJob& damaged : DamagedJobs()) {
    if (damaged.name != args[0]) continue;
    const Status removed = RemoveDamagedJob(damaged);
    return removed.ok() ? 0 : FailVerb("forget", removed.message());
  }
  const Result<DetachedJob> job = FindDetached(args[0]);
  if (!job.ok()) return FailVerb("forget", job.status().message());
  if (!job->end)
    return FailVerb("forget", "job " + job->name + " runs; hvdrun stop " + job->name + " ends it");
  if (Status removed = RemoveDetachedJob(job->folder); !removed.ok())
    return FailVerb("forget", removed.message(), 1);
  return 0;
}

}  // namespace hvd
