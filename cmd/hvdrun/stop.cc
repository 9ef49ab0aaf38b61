// hvdrun stop JOB: ends a job of this user on this machine as Ctrl-C would.
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "cmd/hvdrun/verbs.h"
#include "configs/message_text.h"
#include "launcher/dead_jobs.h"
#include "launcher/jobs_here.h"
#include "launcher/output.h"

namespace hvd {

int StopVerb(const std::vector<std::string>& args) {
  if (args.size() != 1) {
    WriteAll(STDERR_FILENO, "hvdrun stop: takes the id of one job; hvdrun ps lists them\n");
    return kUsageError;
  }
  const std::vector<std::string> ended = EndDeadJobs();
  for (const std::string& sentence : ended)
    WriteAll(STDERR_FILENO, "hvdrun stop: " + sentence + "\n");
  if (std::any_of(ended.begin(), ended.end(), [&](const std::string& sentence) {
        return sentence.starts_with("job " + args[0] + " ");
      }))
    return 0;
  std::vector<JobHere> jobs = ListJobs();
  auto job =
      std::find_if(jobs.begin(), jobs.end(), [&](const JobHere& j) { return j.id == args[0]; });
  if (job == jobs.end()) {
    WriteAll(STDERR_FILENO, "hvdrun stop: no job " + Quoted(args[0]) +
                                " of yours runs on this machine; hvdrun ps lists them\n");
    return kUsageError;
  }
  SignalProcess(job->driver, SIGINT);
  return PrintText(
      "hvdrun stop: job " + job->id +
      " was asked to end as by Ctrl-C: its ranks get SIGINT, then SIGTERM, then SIGKILL\n");
}

}  // namespace hvd
