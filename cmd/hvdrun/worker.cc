// The process that mpirun or jsrun starts for a rank of hvdrun --mpi.
#include <unistd.h>

#include <optional>
#include <string>

#include "cmd/hvdrun/verbs.h"
#include "launcher/external/places/place_holder.h"
#include "launcher/output/output.h"
#include "launcher/process/jobs/job_id.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

std::optional<uint32_t> ParseCount(const std::string& text) {
  const auto count = ParseWhole<uint32_t>(text);
  return count != 0 ? count : std::nullopt;
}

}  // namespace

int WorkerVerb(const std::vector<std::string>& args) {
  const bool known =
      args.size() == 4 && args[0] == "--job" && ParseJobId(args[1]) && args[2] == "--hosts";
  const std::optional<uint32_t> hosts = known ? ParseCount(args[3]) : std::nullopt;
  if (hosts) return HoldPlace(args[1], *hosts);
  WriteAll(STDERR_FILENO,
           "hvdrun worker: started by mpirun for hvdrun itself; say hvdrun --mpi -np 2 COMMAND\n");
  return kUsageError;
}

}  // namespace hvd
