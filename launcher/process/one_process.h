// A look at one process, by its number.
#ifndef HVD_LAUNCHER_PROCESS_ONE_PROCESS_H_
#define HVD_LAUNCHER_PROCESS_ONE_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace hvd {

struct ProcessInfo {
  pid_t pid = 0, parent = 0, session = 0;
  char state = '?';          // 'Z': ended, waits to be reaped
  uint64_t start_ticks = 0;  // tells a process from a later one of the same pid
};

// Nothing when there is none of this number.
std::optional<ProcessInfo> LookAtProcess(pid_t pid);

// True when the process has a SIGKILL before it, is ending, dumps its core, or is gone.
bool IsDying(pid_t pid);

// How much of its memory is resident, shared pages too. Nothing when there is none of this number.
std::optional<uint64_t> ResidentBytes(pid_t pid);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_ONE_PROCESS_H_
