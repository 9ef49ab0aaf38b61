// Compares the programs that the hosts have for the command. Pure.
#ifndef HVD_LAUNCHER_JOB_HOST_RECORDS_COMMAND_TROUBLE_H_
#define HVD_LAUNCHER_JOB_HOST_RECORDS_COMMAND_TROUBLE_H_

#include <optional>
#include <string>
#include <vector>

#include "launcher/wire/command_facts.h"

namespace hvd {

// Some hosts cannot start the command: one sentence about all of them, and the exit code that a
// shell would give. Nothing when all can, or when no host was asked to check.
struct CommandTrouble {
  int exit_code = 127;
  std::string sentence;  // without a full stop

  bool operator==(const CommandTrouble&) const = default;
};
std::optional<CommandTrouble> FindCommandTrouble(const std::vector<std::string>& hosts,
                                                 const std::vector<CommandFacts>& facts);

// A sentence when the command is a Python interpreter that differs between hosts, else "".
std::string PythonsDiffer(const std::vector<std::string>& hosts,
                          const std::vector<CommandFacts>& facts);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_HOST_RECORDS_COMMAND_TROUBLE_H_
