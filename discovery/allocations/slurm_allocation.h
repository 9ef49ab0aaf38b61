// The allocation of Slurm: the variables of salloc, sbatch and srun --pty. Pure.
#ifndef HVD_DISCOVERY_ALLOCATIONS_SLURM_ALLOCATION_H_
#define HVD_DISCOVERY_ALLOCATIONS_SLURM_ALLOCATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "discovery/allocations/allocation.h"

namespace hvd {

// The step of Slurm (srun) in which this process runs.
struct SlurmStep {
  uint64_t tasks = 1;
  uint64_t nodes = 1;
  std::string task = "0";
  bool interactive = false;  // the first task of srun --pty, which has the terminal
};

// Nothing outside of a step; the shells of sbatch and salloc are not steps.
std::optional<SlurmStep> ReadSlurmStep(
    const std::function<std::optional<std::string>(const char* name)>& env);

// Nothing if SLURM_JOB_ID is not set.
Result<std::optional<Allocation>> FindSlurmAllocation(const AllocationFacts& facts);

// The component of a heterogeneous job that contains this host; nothing in other jobs.
std::optional<uint32_t> SlurmComponentOf(
    const std::function<std::optional<std::string>(const char* name)>& env,
    const std::string& host);

// Whether srun may inherit this variable of the environment: srun reads SLURM_ and SRUN_ variables
// as options, and those of the job (tasks per node, GPUs per task) must not apply to an agent.
bool SrunInherits(const std::string& name);

}  // namespace hvd

#endif  // HVD_DISCOVERY_ALLOCATIONS_SLURM_ALLOCATION_H_
