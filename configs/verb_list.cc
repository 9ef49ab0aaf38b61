#include "configs/verb_list.h"

#include <algorithm>

namespace hvd {

std::span<const VerbRow> VerbRows() {
  static constexpr VerbRow kRows[] = {
      {"doctor", "", "examines hosts before a job does; hvdrun doctor --help", ""},
      {"env", "", "prints the exports that let a plain python find horovod",
       "Prints exports for a shell, so that it finds hvdrun, and every python that it starts "
       "finds the\n"
       "horovod package of this installation. Workers of hvdrun need no exports. A script that "
       "is started\n"
       "alone, by mpirun or by srun needs them, unless the package was installed by pip:\n"
       "  eval \"$(hvdrun env)\"        bash, zsh, sh\n"
       "  hvdrun env | source         fish\n"},
      {"ps", "", "lists your jobs on this machine",
       "Lists your jobs on this machine: id, age, number of processes, and how many of them are\n"
       "alive on all hosts. Of a job that was started on another machine, it lists the part "
       "here.\n"},
      {"stop", "JOB", "ends one of them, as Ctrl-C would",
       "Ends one of your jobs on this machine, as Ctrl-C would; hvdrun ps lists them. The first\n"
       "letters of its id are enough if no other id begins with them.\n"
       "  --after-step   as SIGTERM would: the ranks of an elastic job leave at their next "
       "commit,\n"
       "                 and hvdrun ends with exit code 75\n"},
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
