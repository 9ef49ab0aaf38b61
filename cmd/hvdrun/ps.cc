// hvdrun ps: which jobs of this user run on this machine.
#include "cmd/hvdrun/verbs.h"
#include "launcher/jobs/dead_jobs.h"
#include "launcher/jobs/local_jobs.h"

namespace hvd {

int PsVerb(const std::vector<std::string>& args) {
  if (!args.empty()) {
    return FailVerb("ps", "takes no arguments; try hvdrun ps");
  }
  for (const std::string& sentence : EndDeadJobs()) VerbLine("ps", sentence);
  return PrintText(JobsTable(ListJobs()));
}

}  // namespace hvd
