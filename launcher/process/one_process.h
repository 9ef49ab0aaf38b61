// Information about one process.
#ifndef HVD_LAUNCHER_PROCESS_ONE_PROCESS_H_
#define HVD_LAUNCHER_PROCESS_ONE_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace hvd {

struct ProcessInfo {
  pid_t pid = 0, parent = 0, session = 0;
  char state = '?';          // 'Z': zombie
  uint64_t start_ticks = 0;  // distinguishes processes that reuse a pid
};

// Nothing if there is no such process.
std::optional<ProcessInfo> LookAtProcess(pid_t pid);

// True if the process has a pending SIGKILL, is exiting, dumping core, or gone.
bool IsDying(pid_t pid);

// Its resident memory, including shared pages. Nothing if there is no such process.
std::optional<uint64_t> ResidentBytes(pid_t pid);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_ONE_PROCESS_H_
