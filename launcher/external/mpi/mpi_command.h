// The command by which mpirun starts a process for each rank of a plan. Pure.
#ifndef HVD_LAUNCHER_EXTERNAL_MPI_MPI_COMMAND_H_
#define HVD_LAUNCHER_EXTERNAL_MPI_MPI_COMMAND_H_

#include <string>
#include <vector>

#include "configs/settings.h"
#include "launcher/external/mpi/mpi_flavor.h"
#include "launcher/wire/plan.h"
#include "runtime/base/status.h"

namespace hvd {

// The words of --mpi-args and --binding-args, as a shell would split them without running anything.
// `said`: the flag, for the sentence.
Result<std::vector<std::string>> SplitMpiArgs(const std::string& said, const std::string& text);

// `program`: mpirun; `process`: the command that it is to start for each rank. The plan's ranks go
// host by host, with as many on each host as the plan says. An error where this MPI has no words
// for it.
Result<std::vector<std::string>> MpiCommand(const std::string& program, const MpiVersion& version,
                                            const Plan& plan, const Settings& settings,
                                            const std::vector<std::string>& process);

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_MPI_MPI_COMMAND_H_
