// The current nodes of a Slurm job, from `scontrol show job`: it may have lost (--no-kill),
// released or gained nodes (scontrol update) since its start. Pure.
#ifndef HVD_DISCOVERY_ALLOCATIONS_SLURM_JOB_H_
#define HVD_DISCOVERY_ALLOCATIONS_SLURM_JOB_H_

#include <string>
#include <string_view>
#include <vector>

#include "discovery/host_spec.h"
#include "runtime/base/status.h"

namespace hvd {

// The command; `id`: SLURM_JOB_ID. Empty if that is not a job number.
std::string SlurmJobCommand(const std::string& id);

// Parses its output for the job `id`, including components of a heterogeneous one. Nodes have their
// slots of `allocated`, the initial hosts; new ones those of its first host. kInvalidArgument: one
// sentence, also for a job that has ended or been requeued.
Result<std::vector<HostSpec>> ReadSlurmJob(std::string_view text, std::string_view id,
                                           const std::vector<HostSpec>& allocated);

}  // namespace hvd

#endif  // HVD_DISCOVERY_ALLOCATIONS_SLURM_JOB_H_
