// hvdrun ps: which jobs of this user run on this machine.
#include <unistd.h>

#include "cmd/hvdrun/verbs.h"
#include "launcher/jobs/dead_jobs.h"
#include "launcher/jobs/local_jobs.h"
#include "launcher/output/output.h"

namespace hvd {

int PsVerb(const std::vector<std::string>& args) {
  if (!args.empty()) {
    WriteAll(STDERR_FILENO, "hvdrun ps: takes no arguments; try hvdrun ps\n");
    return kUsageError;
  }
  for (const std::string& sentence : EndDeadJobs())
    WriteAll(STDERR_FILENO, "hvdrun ps: " + sentence + "\n");
  return PrintText(JobsTable(ListJobs()));
}

}  // namespace hvd
