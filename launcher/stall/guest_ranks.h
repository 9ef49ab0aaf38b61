// Ranks that another launcher has started below a worker of a job: `hvdrun -np 1 torchrun ...` has
// one worker, torchrun, and the ranks of the script are processes below it. Pure: what /proc says
// of the processes is an argument.
#ifndef HVD_LAUNCHER_STALL_GUEST_RANKS_H_
#define HVD_LAUNCHER_STALL_GUEST_RANKS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "launcher/process/one_process.h"

namespace hvd {

struct GuestRank {
  uint32_t rank = 0;  // by the number that its launcher has given to it
  pid_t pid = 0;      // the topmost process of it
};

// A process whose environment gives it another place in a world than the worker has. Those below
// it, such as the processes of a data loader, are parts of it. `environment_of`: the text of
// /proc/PID/environ.
std::vector<GuestRank> GuestsBelow(pid_t worker, const std::vector<ProcessInfo>& all,
                                   const std::function<std::string(pid_t)>& environment_of);

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_GUEST_RANKS_H_
