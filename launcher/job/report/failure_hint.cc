#include "launcher/job/report/failure_hint.h"

namespace hvd {
namespace {

bool IsPython(std::string_view word) {
  return word.substr(word.rfind('/') + 1).starts_with("python");
}

}  // namespace

std::string IsolatingOption(const std::vector<std::string>& command) {
  size_t at = 0;
  while (at < command.size() && !IsPython(command[at])) ++at;
  for (++at; at < command.size(); ++at) {
    const std::string& word = command[at];
    if (word.size() < 2 || word[0] != '-' || word[1] == '-') return "";  // its script
    for (size_t i = 1; i < word.size(); ++i) {
      if (word[i] == 'E' || word[i] == 'I') return word;
      if (word[i] == 'c' || word[i] == 'm') return "";
      if (word[i] != 'W' && word[i] != 'X') continue;
      if (i + 1 == word.size()) ++at;  // its value is the next word
      break;
    }
  }
  return "";
}

std::string FailureHint(const std::vector<std::string>& command, std::string_view last_stderr,
                        const std::string& port_taken) {
  if (!port_taken.empty() && last_stderr.find("ddress already in use") != std::string_view::npos)
    return "  Its port may be taken: " + port_taken +
           "; start the job again, or name another port with -x MASTER_PORT=N.\n";
  if (last_stderr.find("No module named 'horovod'") == std::string_view::npos) return "";
  const std::string option = IsolatingOption(command);
  if (option.empty()) return "";
  return "  With " + option +
         " Python ignores PYTHONPATH, by which hvdrun shows it the package: leave " + option +
         " out, or install horovod into that Python.\n";
}

}  // namespace hvd
