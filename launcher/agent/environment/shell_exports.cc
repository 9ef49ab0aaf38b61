#include "launcher/agent/environment/shell_exports.h"

#include <string_view>

#include "launcher/channels/bundle/install_paths.h"

namespace hvd {
namespace {

// In single quotes, in which only ' and, for fish, \ are special.
std::string Literal(std::string_view text) {
  std::string quoted = "'";
  for (char c : text) {
    if (c == '\'') {
      quoted += "'\"'\"'";
    } else if (c == '\\') {
      quoted += "'\"\\\\\"'";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

// Puts `folder` at the front of a colon-separated list and removes its other occurrences.
std::string WithFirst(const std::string& folder, std::string_view list) {
  std::string with = folder;
  while (!list.empty()) {
    const size_t end = std::min(list.find(':'), list.size());
    if (end > 0 && list.substr(0, end) != folder) with += ":" + std::string(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return with;
}

}  // namespace

std::string ShellExports(
    const std::string& executable,
    const std::function<std::optional<std::string>(const char* name)>& variable) {
  const std::string bin = executable.substr(0, executable.rfind('/'));
  std::string text;
  for (const auto& [name, folder] :
       {std::pair{"PATH", bin}, std::pair{"PYTHONPATH", PathsBeside(executable).python}}) {
    text += std::string("export ") + name + "=" +
            Literal(WithFirst(folder, variable(name).value_or(""))) + "\n";
  }
  return text;
}

}  // namespace hvd
