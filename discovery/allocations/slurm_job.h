// The nodes that a job of Slurm has now, as `scontrol show job` tells: it may have lost some since
// it began (--no-kill), given some back, or got more (scontrol update). Pure.
#ifndef HVD_DISCOVERY_ALLOCATIONS_SLURM_JOB_H_
#define HVD_DISCOVERY_ALLOCATIONS_SLURM_JOB_H_

#include <string>
#include <string_view>
#include <vector>

#include "discovery/host_spec.h"
#include "runtime/base/status.h"

namespace hvd {

// The command that tells; `id`: SLURM_JOB_ID. Empty where that is no number of a job.
std::string SlurmJobCommand(const std::string& id);

// Reads its output about the job `id`, or the components of a heterogeneous one. A node has as many
// slots as in `allocated`, the hosts at the beginning, and a new one as many as the first of them.
// kInvalidArgument: one sentence, also for a job that is over, or waits to begin again.
Result<std::vector<HostSpec>> ReadSlurmJob(std::string_view text, std::string_view id,
                                           const std::vector<HostSpec>& allocated);

}  // namespace hvd

#endif  // HVD_DISCOVERY_ALLOCATIONS_SLURM_JOB_H_
