// The file that a host has under the name of the command: a plain value, which its agent fills in
// (find_command.h) and the driver compares between hosts (command_trouble.h).
#ifndef HVD_LAUNCHER_WIRE_COMMAND_FACTS_H_
#define HVD_LAUNCHER_WIRE_COMMAND_FACTS_H_

#include <cstdint>
#include <string>

namespace hvd {

struct CommandFacts {
  std::string program;    // as the command says it; empty: nobody looked
  std::string directory;  // where workers are to start
  std::string found;      // where PATH leads; empty: nowhere
  std::string real;       // the file behind all links
  std::string version;    // of a Python, "3.11"; empty: not known
  int32_t error = 0;      // errno: why there is none
  int32_t directory_error = 0;

  bool operator==(const CommandFacts&) const = default;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_WIRE_COMMAND_FACTS_H_
