// Reads small files of /proc.
#ifndef HVD_LAUNCHER_PROCESS_PROC_FILE_H_
#define HVD_LAUNCHER_PROCESS_PROC_FILE_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/text/format.h"

namespace hvd {

// The text of a file, at most 64 MiB; empty if it cannot be read. Does not block on a FIFO.
std::string ReadSmallFile(const std::string& path);

// `name` as in "self/cgroup".
inline std::string ReadProcFile(const std::string& name) { return ReadSmallFile("/proc/" + name); }
inline std::string ReadProcFile(pid_t pid, const char* name) {
  return ReadProcFile(Format("{}/{}", pid, name));
}

// Whether the process runs as this user.
bool IsOwnProcess(pid_t pid);

// The value of a variable in the text of /proc/PID/environ. Pure.
std::optional<std::string> VariableIn(std::string_view environment, std::string_view name);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_PROC_FILE_H_
