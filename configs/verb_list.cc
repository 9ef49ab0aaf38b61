#include "configs/verb_list.h"

#include <algorithm>

#include "configs/failure_codes.h"
#include "configs/message_text.h"

namespace hvd {
namespace {

std::vector<std::string_view> CodeNames() {
  std::vector<std::string_view> names;
  for (const FailureCode& code : FailureCodes()) names.push_back(code.code);
  return names;
}

std::vector<VerbRow> MakeRows() {
  return {
      {.name = "attach",
       .arguments = "[JOB]",
       .summary = "shows the output of a detached job, and ends with it",
       .text = "Shows the output of a job that was started with hvdrun --detach: first what it "
               "printed since you left it, then live. Ends with the exit code of the job. Ctrl-C "
               "asks whether to detach or to stop the job; without a terminal it detaches. JOB may "
               "be left out when only one detached job runs.",
       .entries = {{"-H HOST, --hosts HOST",
                    "of a job of another host, over ssh",
                    {"-H", "--hosts"}}},
       .takes_job = true,
       .of_detached = true},
      {.name = "doctor",
       .arguments = "[options] [command]",
       .summary = "examines hosts before a job does",
       .text = "Connects to all hosts as a run does, without a job, and examines them and each "
               "pair of them: Python and libraries, GPUs, limits, disks, clocks, network. One "
               "report for all, each problem with what to do.",
       .takes_settings = true},
      {.name = "drain",
       .arguments = "[--undo] JOB HOST",
       .summary = "takes a host out of a detached elastic job",
       .text =
           "The ranks of a detached elastic job leave this host at their next commit, and it is "
           "not used again. Name it as the job's list of hosts does.",
       .entries = {{"--undo", "the job may use the host again", {"--undo"}},
                   {"-H HOST, --hosts HOST",
                    "of a job of another host, over ssh",
                    {"-H", "--hosts"}}},
       .takes_job = true,
       .of_detached = true},
      {.name = "dump",
       .arguments = "[-o FILE | --stacks | --native] [--json] [JOB]",
       .summary = "writes the last events of a job's ranks, as a timeline",
       .text = "Writes the last events of all ranks of one of your jobs on this machine to a file, "
               "as a timeline for Perfetto: a recorder in each rank keeps the last few thousand. "
               "The job goes on.",
       .entries =
           {{"-o FILE, --output FILE", "the file; default: hvd-dump-JOB.json", {"-o", "--output"}},
            {"--stacks",
             "print the Python stacks of all ranks instead, equal ones once, by py-spy; also "
             "of scripts that do not use Horovod",
             {"--stacks"}},
            {"--native",
             "the same with the C frames below Python; reading them stops a rank for some "
             "milliseconds",
             {"--native"}},
            {"--json", "print what was written, or the stacks, as JSON", {"--json"}}},
       .takes_job = true,
       .takes_file = true},
      {.name = "env",
       .arguments = "",
       .summary = "prints exports, so that a plain python finds horovod",
       .text = "Prints exports for a shell, so that it finds hvdrun, and every python that it "
               "starts finds the horovod package of this installation. Workers of hvdrun need no "
               "exports. A script that is started alone, by mpirun or by srun needs them, unless "
               "the package was installed by pip.",
       .entries = {{"eval \"$(hvdrun env)\"", "for bash, zsh and sh", {}},
                   {"hvdrun env | source", "for fish", {}}}},
      {.name = "explain",
       .arguments = "[CODE]",
       .summary = "says what a failure code or an exit code means",
       .text =
           "Says what a code at the end of a failed job means, such as HVD102, and what to try; "
           "or what an exit code of hvdrun means, such as 79. Without a word it lists the codes.",
       .entries = {{"explain HVD102", "by its code or its name, rank-signal", CodeNames()},
                   {"explain $?", "of the command before, in a shell", {}}}},
      {.name = "forget",
       .arguments = "JOB",
       .summary = "removes the output of a detached job that has ended",
       .text = "Removes what is kept of a detached job that has ended.",
       .entries = {{"--all", "of all that have ended", {"--all"}},
                   {"-H HOST, --hosts HOST",
                    "of a job of another host, over ssh",
                    {"-H", "--hosts"}}},
       .takes_job = true,
       .of_detached = true},
      {.name = "help",
       .arguments = "[VERB | SECTION]",
       .summary = "prints the help of a verb, or a section of the options",
       .text = "Prints the help of a verb, or one section of the options; without a word, all of "
               "hvdrun --help."},
      {.name = "logs",
       .arguments = "[-f] [--rank R] [--since TIME] [JOB]",
       .summary = "prints the output of a detached job",
       .text =
           "Prints the output that is kept of a job that was started with hvdrun --detach, also "
           "after its end. Of output beyond --detached-output-limit, a line says how many lines "
           "are missing.",
       .entries = {{"-f, --follow", "go on until the job ends", {"-f", "--follow"}},
                   {"--rank R", "of this rank alone, without prefixes", {"--rank"}},
                   {"--since TIME",
                    "from then on, to a second: 30s, 10m, 2h or 1d ago, or 2026-01-31T12:30",
                    {"--since"}},
                   {"-H HOST, --hosts HOST",
                    "of a job of another host, over ssh",
                    {"-H", "--hosts"}}},
       .takes_job = true,
       .of_detached = true},
      {.name = "ps",
       .arguments = "[--json]",
       .summary = "lists your jobs on this machine",
       .text =
           "Lists your jobs on this machine: id, age, number of processes, and how many of "
           "them are alive on all hosts. Of a job that was started on another machine, it "
           "lists the part here. A second table has your detached jobs by name, also those that "
           "have ended.",
       .entries = {{"--json", "the detached jobs, as JSON", {"--json"}},
                   {"-H HOSTS, --hosts HOSTS",
                    "those of other hosts, over ssh: a,b",
                    {"-H", "--hosts"}}}},
      {.name = "scale",
       .arguments = "JOB N",
       .summary = "changes the number of ranks of a detached elastic job",
       .text = "A detached elastic job uses at most N slots of its hosts from now on, within "
               "--min-np and --max-np. Its ranks change at their next commit.",
       .entries = {{"-H HOST, --hosts HOST",
                    "of a job of another host, over ssh",
                    {"-H", "--hosts"}}},
       .takes_job = true,
       .of_detached = true},
      {.name = "status",
       .arguments = "[--json] [JOB]",
       .summary = "says how a detached job fares, or how it ended",
       .text = "Says of a job that was started with hvdrun --detach: since when it runs, its "
               "generation, ranks and hosts, the last output of each rank; of one that has ended, "
               "exit code and first cause.",
       .entries = {{"--json", "the same as JSON", {"--json"}},
                   {"-H HOST, --hosts HOST",
                    "of a job of another host, over ssh",
                    {"-H", "--hosts"}}},
       .takes_job = true,
       .of_detached = true},
      {.name = "stop",
       .arguments = "[--after-step] JOB",
       .summary = "ends one of your jobs, as Ctrl-C would",
       .text =
           "Ends one of your jobs on this machine, as Ctrl-C would; hvdrun ps lists them. The "
           "first letters of its id are enough if no other id begins with them. A detached job is "
           "named by its name.",
       .entries = {{"--after-step",
                    "as SIGTERM would: the ranks of an elastic job leave at their next commit, and "
                    "hvdrun ends with exit code 75",
                    {"--after-step"}},
                   {"-H HOST, --hosts HOST",
                    "of a job of another host, over ssh",
                    {"-H", "--hosts"}}},
       .takes_job = true},
      {.name = "top",
       .arguments = "[--once] [--json] [JOB]",
       .summary = "shows each rank of a job, its rates and waits",
       .text = "Shows the state of one of your jobs on this machine, each second: what each rank "
               "does, its rates, for how much of the time it waits for others, and which rank the "
               "others wait for. q ends it. JOB may be left out when only one runs. Without a "
               "terminal it prints a line a second.",
       .entries = {{"--once", "print one table, then exit", {"--once"}},
                   {"--json", "print each view as a line of JSON", {"--json"}}},
       .takes_job = true},
      {.name = "trace",
       .arguments = "TOOL FILE... [options]",
       .summary = "says what limits a job, merges and converts timelines",
       .text = "Reads timelines (hvdrun --timeline FILE) and traces of PyTorch's profiler.",
       .entries = {{"report FILE [--json] [--html PAGE]",
                    "says what limits the job: who is late and where, how much communication is "
                    "hidden behind computing, which tensors take longest; as text, as JSON, and as "
                    "a page with plots that needs nothing else",
                    {"report", "--json", "--html"}},
                   {"merge FILE... -o OUT",
                    "makes one trace of several, on one clock",
                    {"merge", "-o"}},
                   {"export FILE --format chrome|perfetto -o OUT",
                    "the same events as JSON with one event in a line, or in Perfetto's own form, "
                    "a third as large; --rank N: of one rank",
                    {"export", "--format", "--rank"}},
                   {"tail FILE [--once]",
                    "a line for each second of a timeline that is being written, until it is "
                    "complete; with --once, of what is there",
                    {"tail", "--once"}}},
       .end = "A file that cannot be read is exit code 2 and one sentence.",
       .takes_file = true},
      {.name = "tune",
       .arguments = "TOOL [ID] [FILE]",
       .summary = "lists and uses the results that --autotune remembers",
       .text = "The results of hvdrun --autotune are remembered on the host of rank 0, in the "
               "cache folder of the user, by model, number of ranks and kind of hosts. The next "
               "run with --autotune starts there. ID: its first letters are enough; it may be left "
               "out when there is only one.",
       .entries = {{"show [ID] [--json]", "lists them, or all facts of one", {"show", "--json"}},
                   {"export [ID]", "prints one as YAML for --config-file", {"export"}},
                   {"apply [ID] FILE",
                    "puts one into a file for --config-file, whose other keys stay; its comments "
                    "do not",
                    {"apply"}},
                   {"forget ID", "removes one; --all: all of them", {"forget", "--all"}}},
       .takes_file = true},
  };
}

}  // namespace

std::span<const VerbRow> VerbRows() {
  static const auto* const rows = new std::vector<VerbRow>(MakeRows());
  return *rows;
}

const VerbRow* FindVerb(std::string_view name) {
  const std::span<const VerbRow> rows = VerbRows();
  const auto row = std::ranges::find(rows, name, &VerbRow::name);
  return row == rows.end() ? nullptr : &*row;
}

std::string VerbNames() {
  std::string names;
  for (const VerbRow& row : VerbRows()) {
    names += (names.empty() ? "" : " ") + std::string(row.name);
  }
  return names;
}

std::string WordsOf(const VerbRow& verb) {
  std::string words;
  for (const VerbEntry& entry : verb.entries) {
    for (std::string_view word : entry.words)
      words += (words.empty() ? "" : " ") + std::string(word);
  }
  return words;
}

std::string_view NearestVerb(std::string_view word) {
  std::vector<std::string_view> names;
  for (const VerbRow& row : VerbRows()) names.push_back(row.name);
  const std::string_view nearest = NearestOf(word, names);
  if (!nearest.empty()) return nearest;
  // "pss": a third of the letters of "ps" is none.
  const auto near = std::ranges::find_if(names, [&](std::string_view name) {
    return name.size() < 3 && word.size() > 1 && EditDistance(word, name) == 1;
  });
  return near == names.end() ? std::string_view() : *near;
}

}  // namespace hvd
