// The launcher that started this process, and as which rank of which world: a decision over the
// environment alone. Pure.
//
//   HVD_AGENT                       hvdrun
//   HOROVOD_RANK, HOROVOD_SIZE      Ray, an operator, stock horovodrun; or a launcher of one's own
//                                   with HVD_JOB
//   TORCHELASTIC_RUN_ID, RANK, ...  torchrun
//   OMPI_COMM_WORLD_RANK, ..._SIZE  mpirun of Open MPI
//   SLURM_PROCID, inside a step     srun
//   PMI_RANK, PMI_SIZE              mpirun of MPICH and its relatives
//   none of these, or a size of 1   nobody: a world of one
//
// HOROVOD_CONTROLLER=mpi (or HOROVOD_CPU_OPERATIONS=mpi) has the ranks find each other by MPI,
// whoever but hvdrun started them; ranks of Open MPI's mpirun and of srun --mpi=pmix do so by
// themselves where they are on several hosts and no key-value server is named.
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

// A rank that somebody else started.
struct ExternalRank {
  std::string launcher;  // "mpirun", for texts
  // Tells this job from every other one of this user on this host; empty: the parent process does.
  std::string job;
  std::string host;  // its name by the launcher; empty: that of the machine
  uint32_t rank = 0, size = 1, local_rank = 0, local_size = 1;
  std::string store;  // "address:port" of an HTTP key-value server; empty: none
  // MPI is to tell the rest, and carries what goes between hosts. Rank and size are what the
  // environment says; a size of 0: it says nothing.
  bool over_mpi = false;
  std::vector<RankRun> layout;  // of all ranks, once MPI has told
  bool operator==(const ExternalRank&) const = default;
};

struct Standalone {
  bool operator==(const Standalone&) const = default;
};
using DetectedLaunch = std::variant<Standalone, AgentAddress, ExternalRank>;

using EnvLookup = std::function<std::optional<std::string>(const char* name)>;

// kInvalidArgument with a sentence for variables that are half set, contradict each other or make
// no sense.
Result<DetectedLaunch> DetectLaunch(const EnvLookup& env);

}  // namespace hvd

#endif  // HVD_RUNTIME_BOOTSTRAP_LAUNCHER_DETECTION_H_
