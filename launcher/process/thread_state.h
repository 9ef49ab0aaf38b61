// The facts that the kernel shows about a process and its main thread in /proc. The texts are
// parsed by pure functions.
#ifndef HVD_LAUNCHER_PROCESS_THREAD_STATE_H_
#define HVD_LAUNCHER_PROCESS_THREAD_STATE_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hvd {

struct ThreadState {
  std::string state;       // "R", "S", "D", "T", "t", "Z"; empty: there is no such process
  uint64_t cpu_ticks = 0;  // of the process so far, 100 a second
  std::string blocked_in;  // the system call that its main thread sleeps in; empty: none, not known
};

ThreadState ReadThreadState(pid_t pid);

// The counts of a process that only grow.
struct ProcessUse {
  uint64_t cpu_ticks = 0;    // with those of its children that have ended, 100 a second
  uint64_t bytes_moved = 0;  // by read() and write(), from files, pipes and caches
};
ProcessUse ReadProcessUse(pid_t pid);
// How often the main thread has gone to sleep.
uint64_t ReadSleeps(pid_t pid);

// Whether the process handles the signal, by its /proc/PID/status.
bool HandlesSignal(pid_t pid, int signal);

// ---- pure

// Of /proc/PID/stat: the state and the ticks.
ThreadState ParseStat(std::string_view stat);
// Of /proc/PID/syscall: "nanosleep", "system call 1000"; empty while it runs.
std::string ParseSyscall(std::string_view text);
// Of /proc/PID/stat.
uint64_t ParseTicks(std::string_view stat);
// Of /proc/PID/io and /proc/PID/status: the number behind "name: "; 0 where there is none.
uint64_t ParseCount(std::string_view text, std::string_view name);
// Of /proc/PID/status: is the signal's bit set in SigCgt?
bool ParseHandles(std::string_view status, int signal);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_THREAD_STATE_H_
