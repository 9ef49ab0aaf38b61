// The limits of the kernel on a program's arguments and variables, and a sentence when they are
// exceeded. Pure but for LimitsHere.
#ifndef HVD_LAUNCHER_PROCESS_EXEC_SIZE_H_
#define HVD_LAUNCHER_PROCESS_EXEC_SIZE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace hvd {

struct ExecLimits {
  size_t one = 131'071;  // of one argument or variable, "NAME=value"
  size_t all = 0;        // of all together, with a pointer for each
};

// Those of programs that this process starts.
ExecLimits LimitsHere();

// Why execve would refuse them; nothing when it would not.
std::optional<std::string> WhyTooLong(const std::vector<std::string>& argv,
                                      const std::vector<std::string>& environment,
                                      const ExecLimits& limits);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_EXEC_SIZE_H_
