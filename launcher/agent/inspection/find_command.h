// Looks up the command on this host as the start of a worker does, without running it, so that
// hosts without it, or with another Python, are reported before anything starts. Pure except
// LookForCommand.
#ifndef HVD_LAUNCHER_AGENT_INSPECTION_FIND_COMMAND_H_
#define HVD_LAUNCHER_AGENT_INSPECTION_FIND_COMMAND_H_

#include <string>
#include <string_view>

#include "launcher/wire/command_facts.h"

namespace hvd {

// `path` in the format of PATH.
CommandFacts LookForCommand(const std::string& program, const std::string& path,
                            const std::string& directory);

// "3.11" of "/usr/bin/python3.11"; else from `pyvenv`, the text of a virtual environment's
// pyvenv.cfg ("version = 3.11.2"); empty: unknown.
std::string PythonVersion(std::string_view real_path, std::string_view pyvenv);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_INSPECTION_FIND_COMMAND_H_
