// Looks for the command on this host: found as the start of a worker will find it, and looked at,
// not run. So hosts that lack it, or have another Python, are named before anything starts. But for
// LookForCommand pure.
#ifndef HVD_LAUNCHER_AGENT_INSPECTION_FIND_COMMAND_H_
#define HVD_LAUNCHER_AGENT_INSPECTION_FIND_COMMAND_H_

#include <string>
#include <string_view>

#include "launcher/wire/command_facts.h"

namespace hvd {

// `path` as in PATH.
CommandFacts LookForCommand(const std::string& program, const std::string& path,
                            const std::string& directory);

// "3.11" of "/usr/bin/python3.11"; else by `pyvenv`, the text of a virtual environment's pyvenv.cfg
// ("version = 3.11.2"); empty when neither tells.
std::string PythonVersion(std::string_view real_path, std::string_view pyvenv);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_INSPECTION_FIND_COMMAND_H_
