// The step of Slurm (srun) in which this process runs. Pure.
#ifndef HVD_DISCOVERY_ALLOCATIONS_SLURM_STEP_H_
#define HVD_DISCOVERY_ALLOCATIONS_SLURM_STEP_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace hvd {

struct SlurmStep {
  uint64_t tasks = 1;
  uint64_t nodes = 1;
  std::string task = "0";
  bool interactive = false;  // the first task of srun --pty, which has the terminal
};

// Nothing outside of a step; the shells of sbatch and salloc are not steps.
std::optional<SlurmStep> ReadSlurmStep(
    const std::function<std::optional<std::string>(const char* name)>& env);

}  // namespace hvd

#endif  // HVD_DISCOVERY_ALLOCATIONS_SLURM_STEP_H_
