// hvdrun ps: the jobs of this user that run on this machine, and all detached jobs, including those
// that have ended.
#include "cmd/hvdrun/verbs.h"
#include "launcher/process/jobs/dead_jobs.h"
#include "launcher/process/jobs/local_jobs.h"
#include "runtime/base/clock.h"

namespace hvd {

int PsVerb(const std::vector<std::string>& args) {
  const bool json = args == std::vector<std::string>{"--json"};
  if (!args.empty() && !json) {
    return FailVerb("ps", "takes no arguments but --json; try hvdrun ps");
  }
  for (const std::string& sentence : EndDeadJobs()) VerbLine("ps", sentence);
  const Result<std::vector<DetachedJob>> detached = DetachedJobs();
  if (!detached.ok()) VerbLine("ps", "detached jobs are not shown: " + detached.status().message());
  for (const DamagedJob& damaged : DamagedJobs())
    VerbLine("ps",
             damaged.path + " " + damaged.reason +
                 (damaged.removable ? "; hvdrun forget " + damaged.name + " removes it" : ""));
  if (json) return detached.ok() ? PrintText(DetachedListJson(*detached)) : kUsageError;
  const std::string table = detached.ok() ? DetachedTable(*detached, WallSeconds()) : "";
  return PrintText(JobsTable(ListJobs()) + (table.empty() ? "" : "\n" + table));
}

}  // namespace hvd
