// The adopting agent: one per host and job whose ranks somebody else started (mpirun, srun, Ray, an
// operator). It owns the page, the segments, the generations and the death watch, not processes or
// output, and ends when the last rank has gone.
//
// The ranks of one host need nothing else. Those of several hosts meet by a key-value server
// (rendezvous.h), or know from MPI where all of them are and tell (LinkLayout); then it is they who
// tell other hosts of a break.
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
  std::string secret;            // of the job, if it has one; proves that a rank is of it
  uint32_t slots = 0, size = 0;  // ranks on this host, in the world
  std::string host;              // its name; empty: that of the machine
  std::string store;             // "address:port"; empty: all ranks are here, or they tell
};

// --adopt ID --slots N --size N [--host NAME] [--store ADDRESS:PORT]
Result<AdoptOptions> ParseAdoptArguments(const std::vector<std::string>& arguments);

// Serves the ranks that connect to `listener` until none is left. `listener`: as ListenLinkIfFree
// makes it, in any process. Returns the exit code. Blocks; one thread beside those of page watches.
int RunAdoptingAgent(AdoptOptions options, UniqueFd listener);

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_ADOPT_ADOPT_H_
