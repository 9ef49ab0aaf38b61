// Data of /proc about a process and its main thread. Parsing functions are pure.
#ifndef HVD_LAUNCHER_PROCESS_THREAD_STATE_H_
#define HVD_LAUNCHER_PROCESS_THREAD_STATE_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hvd {

struct ThreadState {
  std::string state;       // "R", "S", "D", "T", "t", "Z"; empty: no such process
  uint64_t cpu_ticks = 0;  // total of the process, 100 per second
  std::string
      blocked_in;  // the system call in which its main thread sleeps; empty: none, or unknown
};

ThreadState ReadThreadState(pid_t pid);

// Monotonic counters of a process.
struct ProcessUse {
  uint64_t cpu_ticks = 0;    // including ended children, 100 per second
  uint64_t bytes_moved = 0;  // by read() and write(), from files, pipes and caches
};
ProcessUse ReadProcessUse(pid_t pid);
// Voluntary context switches of the main thread.
uint64_t ReadSleeps(pid_t pid);

// Whether the process has a handler for the signal, from /proc/PID/status.
bool HandlesSignal(pid_t pid, int signal);

// ---- pure

// Of /proc/PID/stat: the state and the ticks.
ThreadState ParseStat(std::string_view stat);
// Of /proc/PID/syscall: "nanosleep", "system call 1000"; empty while it runs.
std::string ParseSyscall(std::string_view text);
// Of /proc/PID/stat.
uint64_t ParseTicks(std::string_view stat);
// Of /proc/PID/io and /proc/PID/status: the number after "name: "; 0 if absent.
uint64_t ParseCount(std::string_view text, std::string_view name);
// Of /proc/PID/status: whether the signal's bit is set in SigCgt.
bool ParseHandles(std::string_view status, int signal);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_THREAD_STATE_H_
