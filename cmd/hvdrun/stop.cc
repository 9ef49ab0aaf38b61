// hvdrun stop JOB: ends a job of this user on this machine as Ctrl-C would, or with --after-step as
// SIGTERM would, which lets the ranks of an elastic job reach a commit.
#include <algorithm>
#include <csignal>
#include <optional>

#include "cmd/hvdrun/verbs.h"
#include "launcher/process/jobs/dead_jobs.h"
#include "launcher/process/jobs/local_jobs.h"

namespace hvd {
namespace {

int Asked(const std::string& job, bool after_step) {
  if (after_step)
    return PrintText("hvdrun stop: job " + job +
                     " was asked to end as by SIGTERM: the ranks of an elastic job leave at their "
                     "next commit; those of another job get SIGTERM, then SIGKILL\n");
  return PrintText("hvdrun stop: job " + job +
                   " was asked to end as by Ctrl-C: its ranks get SIGINT, then SIGTERM, then "
                   "SIGKILL\n");
}

}  // namespace

int StopVerb(const std::vector<std::string>& all_args) {
  std::vector<std::string> args = all_args;
  const bool after_step = std::erase(args, "--after-step") > 0;
  if (args.size() != 1) {
    return FailVerb("stop", "takes the id of one job; hvdrun ps lists them");
  }
  const Result<DetachedJob> detached = FindDetached(args[0]);
  if (detached.ok()) {
    const std::optional<ProcessInfo> driver = DriverOf(*detached);
    if (!driver) return FailVerb("stop", "job " + detached->name + " has ended already", 1);
    SignalProcess(*driver, after_step ? SIGTERM : SIGINT);
    return Asked(detached->name, after_step);
  }
  const std::vector<std::string> ended = EndDeadJobs();
  for (const std::string& sentence : ended) VerbLine("stop", sentence);
  if (std::any_of(ended.begin(), ended.end(), [&](const std::string& sentence) {
        return sentence.starts_with("job " + args[0] + " ");
      }))
    return 0;
  const std::vector<JobHere> jobs = ListJobs();
  Result<const JobHere*> found = JobNamed(jobs, args[0]);
  if (!found.ok()) {
    // A detached job that is damaged or was started elsewhere.
    const Status& why = IsAmongDetached(args[0]) ? detached.status() : found.status();
    return FailVerb("stop", why.message());
  }
  const JobHere* job = *found;
  if (job->part) {
    return FailVerb("stop", "only a part of job " + job->id +
                                " runs on this machine; its hvdrun runs on " + Origin(*job) +
                                ", and hvdrun stop " + job->id + " ends it there");
  }
  SignalProcess(job->driver, after_step ? SIGTERM : SIGINT);
  return Asked(job->id, after_step);
}

}  // namespace hvd
