#include "launcher/job/host_records/command_trouble.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "configs/message_text.h"
#include "configs/python_command.h"
#include "launcher/job/host_records/host_stages.h"
#include "runtime/base/exit_status.h"

namespace hvd {
namespace {

// Groups hosts by what they have, in the order of each group's first host.
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
  return {kCommandNotExecutable,
          "the working directory " + Shown(facts[0].directory) + " cannot be entered on " +
              HavingText(groups, ": ", ": ") +
              "; workers start where hvdrun was started: start it in a directory that all hosts "
              "have, or make that one there. Nothing was started"};
}

}  // namespace

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
  // If no host has it, the first worker's start reports that, with PATH or a suggested spelling.
  if (have.empty() || (lack.empty() && refused.empty())) return std::nullopt;
  CommandTrouble trouble;
  if (lack.empty()) trouble.exit_code = kCommandNotExecutable;
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
