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

// Whether the process handles the signal, by its /proc/PID/status.
bool HandlesSignal(pid_t pid, int signal);

// ---- pure

// Of /proc/PID/stat: the state and the ticks.
ThreadState ParseStat(std::string_view stat);
// Of /proc/PID/syscall: "nanosleep", "system call 1000"; empty while it runs.
std::string ParseSyscall(std::string_view text);
// Of /proc/PID/status: is the signal's bit set in SigCgt?
bool ParseHandles(std::string_view status, int signal);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_THREAD_STATE_H_
