// Ranks that another launcher started below a worker: `hvdrun -np 1 torchrun ...` has one worker,
// torchrun, and the script's ranks are its descendants. Pure: the data of /proc is an argument.
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
  uint32_t rank = 0;  // as numbered by its launcher
  pid_t pid = 0;      // its topmost process
};

// The processes below `worker` whose environment sets another rank or world than the worker's.
// Their own descendants, such as data loader processes, belong to them. `environment_of`: the text
// of /proc/PID/environ.
std::vector<GuestRank> GuestsBelow(pid_t worker, const std::vector<ProcessInfo>& all,
                                   const std::function<std::string(pid_t)>& environment_of);

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_GUEST_RANKS_H_
