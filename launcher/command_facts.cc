#include "launcher/command_facts.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "configs/message_text.h"
#include "launcher/host_stages.h"
#include "launcher/proc_file.h"
#include "launcher/spawn.h"

namespace hvd {
namespace {

constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;
constexpr std::string_view kDigits = "0123456789";

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

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

// "3.11" at the head of "3.11.2"; empty when there are no two numbers.
std::string MajorMinor(std::string_view text) {
  size_t dot = text.find_first_not_of(kDigits);
  if (dot == 0 || dot == std::string_view::npos || text[dot] != '.') return "";
  size_t end = std::min(text.find_first_not_of(kDigits, dot + 1), text.size());
  return end == dot + 1 ? "" : std::string(text.substr(0, end));
}

// Hosts by what they have, in the order of the first of each.
using Groups = std::vector<std::pair<std::string, std::vector<std::string>>>;

void Add(Groups& groups, const std::string& what, const std::string& host) {
  auto known = std::find_if(groups.begin(), groups.end(),
                            [&](const auto& group) { return group.first == what; });
  if (known == groups.end()) known = groups.insert(groups.end(), {what, {}});
  known->second.push_back(host);
}

// "a, b have x; c has y"
std::string HavingText(const Groups& groups, const char* one, const char* many) {
  std::string text;
  for (const auto& [what, who] : groups) {
    if (!text.empty()) text += "; ";
    text += HostNames(who) + (who.size() == 1 ? one : many) + what;
  }
  return text;
}

std::string Shown(const std::string& path) { return Printable(path, kMaxShownPath); }

std::string PythonText(const CommandFacts& facts) {
  std::string text = facts.version.empty() ? "one " : "Python " + Printable(facts.version) + " ";
  text += "at " + Shown(facts.found);
  if (facts.real != facts.found && !facts.real.empty()) text += " (" + Shown(facts.real) + ")";
  return text;
}

CommandTrouble DirectoryTrouble(const std::vector<std::string>& hosts,
                                const std::vector<CommandFacts>& facts) {
  Groups groups;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (facts[i].directory_error != 0)
      Add(groups, std::strerror(facts[i].directory_error), hosts[i]);
  }
  return {kNotExecutable,
          "the working directory " + Shown(facts[0].directory) + " cannot be entered on " +
              HavingText(groups, ": ", ": ") +
              "; workers start where hvdrun was started: start it in a directory that all hosts "
              "have, or make that one there. Nothing was started"};
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
  // A virtual environment's python is a link in its bin, beside whose folder pyvenv.cfg lies.
  facts.version =
      PythonVersion(facts.real, ReadSmallFile(FolderOf(FolderOf(found.path)) + "/pyvenv.cfg"));
  return facts;
}

bool LooksLikePython(std::string_view program) {
  std::string_view name = BaseName(program);
  for (std::string_view kind : {"python", "pypy"}) {
    if (name.starts_with(kind) &&
        name.find_first_not_of("0123456789.", kind.size()) == std::string_view::npos)
      return true;
  }
  return false;
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

std::optional<CommandTrouble> FindCommandTrouble(const std::vector<std::string>& hosts,
                                                 const std::vector<CommandFacts>& facts) {
  if (std::any_of(facts.begin(), facts.end(),
                  [](const CommandFacts& f) { return f.directory_error != 0; })) {
    return DirectoryTrouble(hosts, facts);
  }
  Groups have;
  std::vector<std::string> lack, refused;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (facts[i].program.empty()) return std::nullopt;
    if (!facts[i].found.empty()) {
      Add(have, Shown(facts[i].found), hosts[i]);
    } else {
      (facts[i].error == EACCES ? refused : lack).push_back(hosts[i]);
    }
  }
  // Where no host has it, the start of the first worker says so, with PATH or a better spelling.
  if (have.empty() || (lack.empty() && refused.empty())) return std::nullopt;
  CommandTrouble trouble;
  if (lack.empty()) trouble.exit_code = kNotExecutable;
  Groups troubles;
  if (!lack.empty()) troubles.emplace_back("not found", lack);
  if (!refused.empty()) troubles.emplace_back("not executable", refused);
  trouble.sentence = "the command " + Quoted(facts[0].program, kMaxShownPath) +
                     " cannot be started on every host: " + HavingText(troubles, ": ", ": ") +
                     "; " + HavingText(have, " has ", " have ") +
                     "; install it there, or give a path that leads to it on all hosts. Nothing "
                     "was started";
  return trouble;
}

std::string PythonsDiffer(const std::vector<std::string>& hosts,
                          const std::vector<CommandFacts>& facts) {
  Groups groups;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (facts[i].found.empty() || !LooksLikePython(facts[i].program)) return "";
    Add(groups, PythonText(facts[i]), hosts[i]);
  }
  if (groups.size() < 2) return "";
  return Quoted(facts[0].program, kMaxShownPath) +
         " is not the same on all hosts: " + HavingText(groups, " has ", " have ") +
         "; a path that is the same everywhere avoids "
         "surprises";
}

}  // namespace hvd
