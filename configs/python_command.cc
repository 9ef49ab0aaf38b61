#include "configs/python_command.h"

#include "configs/message_text.h"

namespace hvd {
namespace {

// "python" belongs to the active environment; some systems have only python3.
std::string Interpreter(const ScriptFacts& facts) {
  return facts.is_on_path("python") || !facts.is_on_path("python3") ? "python" : "python3";
}

}  // namespace

bool LooksLikePython(std::string_view program) {
  std::string_view name = program.substr(program.rfind('/') + 1);
  for (std::string_view kind : {"python", "pypy"}) {
    if (name.starts_with(kind) &&
        name.find_first_not_of("0123456789.", kind.size()) == std::string_view::npos)
      return true;
  }
  return false;
}

PythonCommand WithPython(const std::vector<std::string>& command, bool module,
                         const ScriptFacts& facts) {
  PythonCommand out{.command = command, .note = {}};
  if (command.empty()) return out;
  const std::string& word = command.front();
  if (module) {
    out.command.insert(out.command.begin(), {Interpreter(facts), "-m"});
    return out;
  }
  const bool has_folder = word.find('/') != std::string::npos;
  const bool is_script =
      word.ends_with(".py") && facts.is_file(word) && (has_folder || !facts.is_on_path(word));
  if (!is_script) return out;
  if (facts.runs_by_itself(word)) {
    if (!has_folder) out.command.front() = "./" + word;
    return out;
  }
  const std::string python = Interpreter(facts);
  out.command.insert(out.command.begin(), python);
  out.note = Printable(word, kMaxShownPath) + " is started as " + python + " " +
             Printable(word, kMaxShownPath);
  return out;
}

}  // namespace hvd
