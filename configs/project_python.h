// Decides whose `python` a job means under `uvx hvdrun`: uv puts the environment that it made for
// hvdrun first on PATH, before that of the project in which somebody trains. Pure.
#ifndef HVD_CONFIGS_PROJECT_PYTHON_H_
#define HVD_CONFIGS_PROJECT_PYTHON_H_

#include <functional>
#include <string>

namespace hvd {

// Facts about this process.
struct ToolFacts {
  bool under_uv = false;    // it, or a parent, was started by uv
  std::string own_folder;   // of this program
  std::string path;         // PATH
  std::string virtual_env;  // VIRTUAL_ENV
  std::string directory;    // where it was started, absolute
  std::function<bool(const std::string& path)> is_file;
};

// The environment of the project: the active one, else the folder .venv of this directory or of the
// nearest one above it. Empty: there is none, or PATH is as the user wants it.
std::string ProjectBehindTool(const ToolFacts& facts);

}  // namespace hvd

#endif  // HVD_CONFIGS_PROJECT_PYTHON_H_
