// The commands by which mpirun, and jsrun of LSF, start a process for each rank of a plan. Pure.
#ifndef HVD_LAUNCHER_EXTERNAL_MPI_MPI_COMMAND_H_
#define HVD_LAUNCHER_EXTERNAL_MPI_MPI_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "configs/settings.h"
#include "launcher/external/mpi/mpi_flavor.h"
#include "launcher/wire/plan.h"
#include "runtime/base/status.h"

namespace hvd {

// Splits --mpi-args and --binding-args like a shell, without expansions. `said`: the flag, for the
// error message.
Result<std::vector<std::string>> SplitMpiArgs(const std::string& setting, const std::string& text);

// `program`: mpirun; `process`: the command to start for each rank. Ranks are placed host by host,
// as in the plan. An error if this MPI cannot express it.
Result<std::vector<std::string>> MpiCommand(const std::string& program, const MpiVersion& version,
                                            const Plan& plan, const Settings& settings,
                                            const std::vector<std::string>& process);

// jsrun's file of resource sets: each rank on its host, with an equal contiguous share of the CPUs,
// and all GPUs and memory. `cpus`: of each host, by number; if fewer than ranks, some ranks share a
// CPU.
std::string ResourceFile(const Plan& plan, const std::vector<uint32_t>& cpus);

// `resource_file`: its path; replaced by --binding-args.
Result<std::vector<std::string>> JsrunCommand(const std::string& program,
                                              const std::string& resource_file,
                                              const Settings& settings,
                                              const std::vector<std::string>& process);

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_MPI_MPI_COMMAND_H_
