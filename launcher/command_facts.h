// What a host has under the name of the command: found as the start of a worker will find it, and looked at, not run. So
// hosts that lack it, or have another Python, are named before anything starts. But for LookForCommand pure.
#ifndef HVD_LAUNCHER_COMMAND_FACTS_H_
#define HVD_LAUNCHER_COMMAND_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

// `path` as in PATH.
CommandFacts LookForCommand(const std::string& program, const std::string& path,
                            const std::string& directory);

// "python", "/opt/bin/python3.11", "pypy3"; what a script's first line names is not seen.
bool LooksLikePython(std::string_view program);

// "3.11" of "/usr/bin/python3.11"; else by `pyvenv`, the text of a virtual environment's pyvenv.cfg ("version = 3.11.2");
// empty when neither tells.
std::string PythonVersion(std::string_view real_path, std::string_view pyvenv);

// Some of the hosts cannot start the command: one sentence for all of them, and the exit code of a shell. Nothing when
// all can, or nobody looked.
struct CommandTrouble {
  int exit_code = 127;
  std::string sentence;  // without a full stop

  bool operator==(const CommandTrouble&) const = default;
};
std::optional<CommandTrouble> FindCommandTrouble(const std::vector<std::string>& hosts,
                                                 const std::vector<CommandFacts>& facts);

// A sentence when the command is a Python that is not the same everywhere, else "".
std::string PythonsDiffer(const std::vector<std::string>& hosts,
                          const std::vector<CommandFacts>& facts);

}  // namespace hvd

#endif  // HVD_LAUNCHER_COMMAND_FACTS_H_
