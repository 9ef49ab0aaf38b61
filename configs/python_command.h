// A Python script or module as the command of a job, as torchrun takes it: with the interpreter in
// front; and which programs are Python. Pure.
#ifndef HVD_CONFIGS_PYTHON_COMMAND_H_
#define HVD_CONFIGS_PYTHON_COMMAND_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

// What the machine knows about words of a command line.
struct ScriptFacts {
  std::function<bool(const std::string& name)> is_on_path;      // a program
  std::function<bool(const std::string& path)> is_file;         // from the directory of the ranks
  std::function<bool(const std::string& path)> runs_by_itself;  // executable, with a first line #!
};

struct PythonCommand {
  std::vector<std::string> command;
  std::string note;  // for the user; empty: the command is as it was
};

// `module`: the first word is a module (-m).
PythonCommand WithPython(const std::vector<std::string>& command, bool module,
                         const ScriptFacts& facts);

// "python", "/opt/bin/python3.11", "pypy3"; the program in a script's first line is not seen.
bool LooksLikePython(std::string_view program);

}  // namespace hvd

#endif  // HVD_CONFIGS_PYTHON_COMMAND_H_
