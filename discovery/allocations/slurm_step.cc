#include "discovery/allocations/slurm_step.h"

#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

// Steps that are no srun: the shell of sbatch, of an interactive salloc, and the like.
constexpr uint64_t kFirstSpecialStep = 0xfffffff0;

std::optional<uint64_t> Number(const std::optional<std::string>& text) {
  return ParseWhole<uint64_t>(text.value_or(""));
}

}  // namespace

std::optional<SlurmStep> ReadSlurmStep(
    const std::function<std::optional<std::string>(const char* name)>& env) {
  std::optional<uint64_t> id = Number(env("SLURM_STEP_ID"));
  if (!id) id = Number(env("SLURM_STEPID"));
  const std::optional<std::string> task = env("SLURM_PROCID");
  if (!id || *id >= kFirstSpecialStep || !task) return std::nullopt;
  SlurmStep step;
  step.task = *task;
  step.tasks = Number(env("SLURM_STEP_NUM_TASKS")).value_or(1);
  step.nodes = Number(env("SLURM_STEP_NUM_NODES")).value_or(1);
  step.interactive = env("SLURM_PTY_PORT").has_value() && *task == "0";
  return step;
}

}  // namespace hvd
