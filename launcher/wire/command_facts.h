// What a host's agent found for the name of the command (find_command.h); the driver compares it
// between hosts (command_trouble.h). A plain value.
#ifndef HVD_LAUNCHER_WIRE_COMMAND_FACTS_H_
#define HVD_LAUNCHER_WIRE_COMMAND_FACTS_H_

#include <cstdint>
#include <string>

namespace hvd {

struct CommandFacts {
  std::string program;    // as in the command; empty: not looked up
  std::string directory;  // where workers are to start
  std::string found;      // path found in PATH; empty: none
  std::string real;       // with all links resolved
  std::string version;    // of a Python, "3.11"; empty: unknown
  int32_t error = 0;      // errno: why there is none
  int32_t directory_error = 0;

  bool operator==(const CommandFacts&) const = default;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_WIRE_COMMAND_FACTS_H_
