#include "configs/verb_list.h"

#include <algorithm>

namespace hvd {

std::span<const VerbRow> VerbRows() {
  static constexpr VerbRow kRows[] = {
      {"doctor", "", "examines hosts before a job does; hvdrun doctor --help", ""},
      {"dump", "[JOB]", "writes the last events of its ranks to a file, as a timeline",
       "Writes the last events of all ranks of one of your jobs on this machine to a file, as a\n"
       "timeline for Perfetto: a recorder in each rank keeps the last few thousand. The job goes "
       "on.\n"
       "  -o FILE, --output FILE   the file; hvd-dump-JOB.json otherwise\n"},
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
      {"top", "[JOB]", "shows how a job fares: each rank, its rates and waits",
       "Shows how one of your jobs on this machine fares, again each second: what each rank does, "
       "its\n"
       "rates, for how much of the time it waits for others, and which rank the others wait for.\n"
       "q ends it. JOB may be left out when only one runs. Without a terminal it prints a line a\n"
       "second.\n"
       "  --once   one table\n"
       "  --json   each view as a line of JSON\n"},
      {"trace", "TOOL FILE...", "says what limits a job, merges and converts timelines",
       "Reads timelines (hvdrun --timeline FILE) and traces of PyTorch's profiler:\n"
       "  report FILE [--json] [--html PAGE]   says what limits the job: who is late and where, "
       "how\n"
       "                 much communication is hidden behind computing, which tensors take "
       "longest;\n"
       "                 as text, as JSON, and as a page with plots that needs nothing else\n"
       "  merge FILE... -o OUT   makes one trace of several, on one clock\n"
       "  export FILE --format chrome|perfetto -o OUT   the same events as JSON with one event in "
       "a\n"
       "                 line, or in Perfetto's own form, a third as large; --rank N: of one rank\n"
       "  tail FILE [--once]   a line for each second of a timeline that is being written, until "
       "it is\n"
       "                 complete; with --once, of what is there\n"
       "A file that cannot be read is exit code 2 and one sentence.\n"},
      {"tune", "TOOL [ID]", "lists and uses the results that --autotune remembers",
       "The results of hvdrun --autotune are remembered on the host of rank 0, in the cache folder "
       "of the\n"
       "user, by model, number of ranks and kind of hosts. The next run with --autotune starts "
       "there. ID: its\n"
       "first letters are enough; it may be left out when there is only one.\n"
       "  show [ID] [--json]   lists them, or all facts of one\n"
       "  export [ID]          prints one as YAML for --config-file\n"
       "  apply [ID] FILE      puts one into a file for --config-file, whose other keys stay; its "
       "comments\n"
       "                       do not\n"
       "  forget ID            removes one; --all: all of them\n"},
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
