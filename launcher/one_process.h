// A look at one process, by its number.
#ifndef HVD_LAUNCHER_ONE_PROCESS_H_
#define HVD_LAUNCHER_ONE_PROCESS_H_

#include <sys/types.h>

#include <optional>

#include "launcher/process_tree.h"

namespace hvd {

// Nothing when there is none of this number.
std::optional<ProcessInfo> LookAtProcess(pid_t pid);

// True when the process has a SIGKILL before it, is ending, dumps its core, or is gone.
bool IsDying(pid_t pid);

}  // namespace hvd

#endif  // HVD_LAUNCHER_ONE_PROCESS_H_
