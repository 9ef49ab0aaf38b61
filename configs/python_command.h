// Accepts a Python script or module as the command of a job, as torchrun does, by prepending the
// interpreter; and detects Python programs. Pure.
#ifndef HVD_CONFIGS_PYTHON_COMMAND_H_
#define HVD_CONFIGS_PYTHON_COMMAND_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

// Facts about the words of a command line on this machine.
struct ScriptFacts {
  std::function<bool(const std::string& name)> is_on_path;      // a program
  std::function<bool(const std::string& path)> is_file;         // from the directory of the ranks
  std::function<bool(const std::string& path)> runs_by_itself;  // executable, with a #! line
};

struct PythonCommand {
  std::vector<std::string> command;
  std::string note;  // for the user; empty: the command is unchanged
};

// `module`: the first word is a module (-m).
PythonCommand WithPython(const std::vector<std::string>& command, bool module,
                         const ScriptFacts& facts);

// "python", "/opt/bin/python3.11", "pypy3"; does not look at a script's #! line.
bool LooksLikePython(std::string_view program);

}  // namespace hvd

#endif  // HVD_CONFIGS_PYTHON_COMMAND_H_
