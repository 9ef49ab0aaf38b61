// Detects the launcher of this process and its rank and world from the environment alone. Pure.
//
//   HVD_AGENT                       hvdrun
//   HOROVOD_RANK, HOROVOD_SIZE      Ray, an operator, stock horovodrun; or a custom launcher with
//                                   HVD_JOB
//   TORCHELASTIC_RUN_ID, RANK, ...  torchrun
//   OMPI_COMM_WORLD_RANK, ..._SIZE  mpirun of Open MPI
//   SLURM_PROCID, inside a step     srun
//   PMI_RANK, PMI_SIZE              mpirun of MPICH and its relatives
//   none of these, or a size of 1   no launcher: a world of one
//
// HOROVOD_CONTROLLER=mpi (or HOROVOD_CPU_OPERATIONS=mpi) makes ranks of any launcher but hvdrun
// find each other over MPI; ranks of Open MPI's mpirun and of srun --mpi=pmix do so by default if
// they are on several hosts and no key-value server is set.
#ifndef HVD_RUNTIME_BOOTSTRAP_LAUNCHER_DETECTION_H_
#define HVD_RUNTIME_BOOTSTRAP_LAUNCHER_DETECTION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/bootstrap/agent_bootstrap.h"
#include "runtime/net/layout.h"

namespace hvd {

// A rank not started by hvdrun.
struct ExternalRank {
  std::string launcher;  // "mpirun", for messages
  // Distinguishes this job from others of this user on this host; empty: use the parent process.
  std::string job;
  std::string host;  // its name in the launcher; empty: the machine's hostname
  uint32_t rank = 0, size = 1, local_rank = 0, local_size = 1;
  std::string store;  // "address:port" of an HTTP key-value server; empty: none
  // MPI supplies the rest and carries the data between hosts. Rank and size are the environment's;
  // size 0: not set there.
  bool over_mpi = false;
  std::vector<RankRun> layout;  // of all ranks, once known from MPI
  bool operator==(const ExternalRank&) const = default;
};

struct Standalone {
  bool operator==(const Standalone&) const = default;
};
using DetectedLaunch = std::variant<Standalone, AgentAddress, ExternalRank>;

using EnvLookup = std::function<std::optional<std::string>(const char* name)>;

// kInvalidArgument with a message if variables are incomplete, contradictory or invalid.
Result<DetectedLaunch> DetectLaunch(const EnvLookup& env);

}  // namespace hvd

#endif  // HVD_RUNTIME_BOOTSTRAP_LAUNCHER_DETECTION_H_
