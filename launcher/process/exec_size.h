// The kernel's limits on a program's arguments and environment, and a message if they are exceeded.
// Pure except LimitsHere.
#ifndef HVD_LAUNCHER_PROCESS_EXEC_SIZE_H_
#define HVD_LAUNCHER_PROCESS_EXEC_SIZE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace hvd {

struct ExecLimits {
  size_t one = 131'071;  // of one argument or variable, "NAME=value"
  size_t all = 0;        // total, including a pointer for each
};

// The limits for programs that this process starts.
ExecLimits LimitsHere();

// Why execve would fail with E2BIG; nothing if it would not.
std::optional<std::string> WhyTooLong(const std::vector<std::string>& argv,
                                      const std::vector<std::string>& environment,
                                      const ExecLimits& limits);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_EXEC_SIZE_H_
