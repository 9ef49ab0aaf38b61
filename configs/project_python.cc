#include "configs/project_python.h"

namespace hvd {
namespace {

std::string ParentOf(const std::string& folder) {
  return folder.substr(0, folder.find_last_of('/'));
}

}  // namespace

std::string ProjectBehindTool(const ToolFacts& facts) {
  // The environment of `uv run` is the project's own, or comes before hvdrun's.
  const std::string first = facts.path.substr(0, facts.path.find(':'));
  const std::string own = ParentOf(facts.own_folder);
  if (!facts.under_uv || first != facts.own_folder || !facts.is_file(own + "/pyvenv.cfg"))
    return "";
  const auto has_python = [&](const std::string& environment) {
    return environment != own && facts.is_file(environment + "/bin/python");
  };
  if (!facts.virtual_env.empty()) return has_python(facts.virtual_env) ? facts.virtual_env : "";
  std::string folder = facts.directory == "/" ? "" : facts.directory;
  while (!has_python(folder + "/.venv")) {
    if (!folder.starts_with('/')) return "";  // the root was the last one
    folder = ParentOf(folder);
  }
  return folder + "/.venv";
}

}  // namespace hvd
