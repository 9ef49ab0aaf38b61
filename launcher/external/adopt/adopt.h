// The adopting agent: one per host and job whose ranks were started by another launcher (mpirun,
// srun, Ray, an operator). Owns the page, the segments, the generations and the death watch, but no
// processes or output, and ends with the last rank.
//
// The ranks of one host need nothing else. Those of several hosts meet through a key-value server
// (rendezvous.h), or know the layout from MPI and send it (LinkLayout); in that case the ranks
// report failures to the other hosts.
#ifndef HVD_LAUNCHER_EXTERNAL_ADOPT_ADOPT_H_
#define HVD_LAUNCHER_EXTERNAL_ADOPT_ADOPT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

struct AdoptOptions {
  std::string job_id;            // of the ranks of this job on this host
  std::string secret;            // of the job, if it has one; authenticates its ranks
  uint32_t slots = 0, size = 0;  // ranks on this host, in the world
  std::string host;              // its name; empty: the machine's
  std::string store;  // "address:port"; empty: all ranks are here, or they send the layout
};

// --adopt ID --slots N --size N [--host NAME] [--store ADDRESS:PORT]
Result<AdoptOptions> ParseAdoptArguments(const std::vector<std::string>& arguments);

// Serves the ranks that connect to `listener` (from ListenLinkIfFree, in any process) until none is
// left. Returns the exit code. Blocks; one thread, apart from those of page watches.
int RunAdoptingAgent(AdoptOptions options, UniqueFd listener);

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_ADOPT_ADOPT_H_
