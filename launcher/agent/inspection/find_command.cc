#include "launcher/agent/inspection/find_command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "configs/python_command.h"
#include "launcher/process/proc_file.h"
#include "launcher/process/spawn.h"
#include "runtime/base/text/path_text.h"

namespace hvd {
namespace {

constexpr std::string_view kDigits = "0123456789";

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

int WhyNoDirectory(const std::string& directory) {
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0) return errno;
  if (!S_ISDIR(info.st_mode)) return ENOTDIR;
  return ::access(directory.c_str(), X_OK) == 0 ? 0 : errno;
}

std::string RealPath(const std::string& path) {
  char real[PATH_MAX] = {};
  return ::realpath(path.c_str(), real) != nullptr ? real : "";
}

// "3.11" from "3.11.2"; empty if there are not two numbers.
std::string MajorMinor(std::string_view text) {
  size_t dot = text.find_first_not_of(kDigits);
  if (dot == 0 || dot == std::string_view::npos || text[dot] != '.') return "";
  size_t end = std::min(text.find_first_not_of(kDigits, dot + 1), text.size());
  return end == dot + 1 ? "" : std::string(text.substr(0, end));
}

}  // namespace

CommandFacts LookForCommand(const std::string& program, const std::string& path,
                            const std::string& directory) {
  CommandFacts facts{.program = program, .directory = directory};
  facts.directory_error = WhyNoDirectory(directory);
  FoundProgram found = FindProgram(program, path, directory);
  facts.found = found.path;
  facts.error = found.error;
  if (found.path.empty()) return facts;
  facts.real = RealPath(found.path);
  if (!LooksLikePython(program) && !LooksLikePython(facts.real)) return facts;
  // The python of a virtual environment is a link in its bin; pyvenv.cfg is beside that folder.
  facts.version =
      PythonVersion(facts.real, ReadSmallFile(FolderOf(FolderOf(found.path)) + "/pyvenv.cfg"));
  return facts;
}

std::string PythonVersion(std::string_view real_path, std::string_view pyvenv) {
  std::string_view name = BaseName(real_path);
  if (size_t digit = name.find_first_of(kDigits); digit != std::string_view::npos) {
    if (std::string version = MajorMinor(name.substr(digit)); !version.empty()) return version;
  }
  while (!pyvenv.empty()) {
    std::string_view line = pyvenv.substr(0, pyvenv.find('\n'));
    pyvenv.remove_prefix(std::min(pyvenv.size(), line.size() + 1));
    if (!line.starts_with("version")) continue;
    size_t equals = line.find('=');
    size_t digit = line.find_first_of(kDigits, std::min(equals, line.size()));
    if (digit != std::string_view::npos) return MajorMinor(line.substr(digit));
  }
  return "";
}

}  // namespace hvd
