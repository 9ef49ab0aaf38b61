#include "discovery/allocations/task_check.h"

#include "configs/message_text.h"
#include "discovery/allocations/slurm_allocation.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

struct TaskVariables {
  const char *launcher, *rank, *size;
};
constexpr TaskVariables kLaunchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
    {"mpirun", "PMI_RANK", "PMI_SIZE"},
};

Status OneOfMany(const std::string& launcher, const std::string& rank, const std::string& size) {
  return InvalidArgument(
      "this hvdrun is task " + Printable(rank) + " of the " + Printable(size) + " that " +
      launcher +
      " started, and each of them would start a job of its own; start one hvdrun, not "
      "below " +
      launcher + ", or say --allocation never to have " + Printable(size) + " jobs");
}

}  // namespace

Status CheckOneTask(const AllocationFacts& facts) {
  const std::optional<SlurmStep> step = ReadSlurmStep(facts.env);
  if (step && step->tasks > 1 && !step->interactive)
    return OneOfMany("srun", step->task, std::to_string(step->tasks));
  if (step) return Status::Ok();  // srun --mpi=pmi2 sets PMI_SIZE, too
  for (const TaskVariables& launcher : kLaunchers) {
    const std::optional<std::string> rank = facts.env(launcher.rank),
                                     size = facts.env(launcher.size);
    if (rank && size && ParseWhole<uint64_t>(*size).value_or(1) > 1)
      return OneOfMany(launcher.launcher, *rank, *size);
  }
  return Status::Ok();
}

}  // namespace hvd
