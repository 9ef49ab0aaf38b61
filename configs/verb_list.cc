#include "configs/verb_list.h"

#include <algorithm>

namespace hvd {

std::span<const VerbRow> VerbRows() {
  static constexpr VerbRow kRows[] = {
      {"doctor", "", "examines hosts before a job does; hvdrun doctor --help", ""},
      {"env", "", "prints the exports that let a plain python find horovod",
       "Prints what makes this installation's horovod package, and hvdrun itself, found by a "
       "shell\n"
       "and by every python that it starts. hvdrun does so for its workers; a script that is "
       "started\n"
       "alone, by mpirun or by srun needs it (unless the package was installed by pip):\n"
       "  eval \"$(hvdrun env)\"        bash, zsh, sh\n"
       "  hvdrun env | source         fish\n"},
      {"ps", "", "lists your jobs on this machine",
       "Lists your jobs on this machine: the id of each, its age, its number of processes and how\n"
       "many of them are alive, on all hosts. Of a job that another machine has started, the part\n"
       "here is listed.\n"},
      {"stop", "JOB", "ends one of them, as Ctrl-C would",
       "Ends a job of yours on this machine, as Ctrl-C would; hvdrun ps lists them. The first "
       "letters\n"
       "of its id do, as long as no other job begins with them.\n"},
  };
  return kRows;
}

std::string VerbNames() {
  std::string names;
  for (const VerbRow& row : VerbRows()) {
    names += (names.empty() ? "" : " ") + std::string(row.name);
  }
  return names;
}

std::string VerbHelpText(std::string_view name) {
  const std::span<const VerbRow> rows = VerbRows();
  auto row =
      std::find_if(rows.begin(), rows.end(), [&](const VerbRow& r) { return r.name == name; });
  if (row == rows.end() || row->help.empty()) return "";
  std::string usage = "usage: hvdrun " + std::string(row->name);
  if (!row->arguments.empty()) usage += " " + std::string(row->arguments);
  return usage + "\n" + std::string(row->help);
}

}  // namespace hvd
