#include "configs/failure_codes.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>

#include "configs/man_sections.h"
#include "configs/message_text.h"
#include "configs/wrapped_text.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

std::vector<FailureCode> MakeCodes() {
  return {
      {"HVD001",
       "usage",
       "",
       "2",
       "The command line, a variable or a configuration file is wrong; nothing was started.",
       {"The sentence names the value and one that works.",
        "hvdrun --print-config shows each setting and where it comes from.",
        "Options of other launchers: hvdrun answers each by name; docs/launcher-words.md lists "
        "them."},
       "errors.md"},
      {"HVD101",
       "rank-exit",
       "rank",
       "that of the rank",
       "A rank ended with an exit code other than 0, before any other rank left. The others were "
       "ended because of it.",
       {"Read the last lines of its stderr in the block: the exception or message of the script.",
        "What other ranks print after it, such as HorovodInternalError, is a consequence.",
        "--output-filename DIR keeps the output of each rank; --dump-on-failure FILE shows what "
        "all ranks did last."},
       "errors.md#when-a-job-fails"},
      {"HVD102",
       "rank-signal",
       "rank",
       "128 + n",
       "A signal ended a rank.",
       {"SIGKILL or SIGTERM, sent by a process: a user, a batch system or a clean-up script; their "
        "logs have the time.",
        "SIGSEGV, SIGBUS, SIGFPE, SIGABRT: a fault in native code. -x PYTHONFAULTHANDLER=1 prints "
        "the lines of Python; one process under gdb shows the rest.",
        "SIGXCPU, SIGXFSZ: a limit of ulimit on that host."},
       "debugging.md"},
      {"HVD103",
       "rank-out-of-memory",
       "rank",
       "137",
       "A rank got SIGKILL, most likely from the kernel for lack of memory.",
       {"Fewer processes on the host (-H a:4), smaller batches, or fewer workers of the "
        "DataLoader.",
        "A container or a batch job may have less memory than the host: docker run --memory, "
        "sbatch "
        "--mem.",
        "journalctl -k on that host names the processes that the kernel killed."},
       "errors.md#when-a-job-fails"},
      {"HVD104",
       "rank-left-early",
       "rank",
       "1",
       "A rank ended with exit code 0 while the others still needed it, without hvd.shutdown().",
       {"Give all ranks the same number of steps, or call hvd.join() on those that have no more "
        "data.",
        "Look for sys.exit(), os._exit() or a return on one rank alone.",
        "Call hvd.shutdown() before os._exit(0)."},
       "operations.md"},
      {"HVD105",
       "command-not-started",
       "command",
       "126, 127; 1 in an elastic job",
       "The command of the job could not be started.",
       {"127, not found: check the spelling, or give the full path; it has to be the same on all "
        "hosts.",
        "126, not executable: hvdrun -np 2 python train.py, or chmod +x.",
        "126, the working directory cannot be entered: it has to exist on all hosts.",
        "126, no room for a process: ulimit -u on the host that the sentence names."},
       "errors.md#starting"},
      {"HVD201",
       "hosts-unusable",
       "host",
       "1; 2 when they have too few slots",
       "Some hosts cannot be used, so nothing was started.",
       {"Each line of the block names a host, the reason, and what to do.",
        "hvdrun doctor -H HOSTS examines all of them without a job."},
       "several-hosts.md"},
      {"HVD202",
       "host-lost",
       "host",
       "1",
       "hvdrun lost a host while the job ran: the host, the network to it or the agent there is "
       "gone.",
       {"Log in to the host: did it reboot, run out of memory, or did a batch system end the step?",
        "hvdrun --elastic goes on without the host."},
       "several-hosts.md"},
      {"HVD203",
       "connection-broken",
       "connection",
       "that of the first rank that ended because of it, else 1",
       "Two hosts receive nothing from each other, while hvdrun hears both.",
       {"A firewall that drops idle connections, or a fault of the network: hvdrun doctor -H A,B "
        "examines each pair of hosts.",
        "--network-interfaces chooses the network between the hosts."},
       "several-hosts.md"},
      {"HVD204",
       "launcher-ended",
       "launcher",
       "that of the launcher, else 1",
       "mpirun or jsrun, which starts the ranks of --mpi and --jsrun, failed.",
       {"Its last lines are in the block. Try it alone: mpirun -np 2 hostname.",
        "Without --mpi hvdrun starts the ranks itself."},
       "mpi.md"},
      {"HVD301",
       "interrupted",
       "interrupt",
       "129, 130, 143, or 128 + n",
       "A signal to hvdrun ended the job: 130 is Ctrl-C or hvdrun stop, 143 SIGTERM, 129 a closed "
       "terminal.",
       {"A job outlives its terminal with hvdrun --detach.",
        "A batch system sends SIGTERM at its limit of time; sbatch --signal=USR1@120 warns the "
        "ranks before."},
       "errors.md#signals-and-exit-codes"},
      {"HVD302",
       "timeout",
       "timeout",
       "124",
       "The job did not end within --timeout.",
       {"Raise --timeout, or leave it out.",
        "If the job hangs: hvdrun top and hvdrun dump --stacks while it runs."},
       "hangs.md"},
      {"HVD303",
       "stopped-after-step",
       "",
       "75",
       "The ranks left after a step because they were asked to (SIGUSR1, SIGTERM to an elastic "
       "job, "
       "hvdrun stop --after-step). Nothing failed.",
       {"Start the job again: it goes on from its last checkpoint."},
       "errors.md#signals-that-warn"},
      {"HVD401",
       "stall-limit",
       "stall",
       "79",
       "A collective took longer than --stall-check-shutdown-time-seconds.",
       {"The lines of the block name each missing rank, what it does, and the line of the script.",
        "A checkpoint or an evaluation on one rank alone may take that long: raise the limit.",
        "hvdrun dump --stacks shows the stacks of all ranks while the job hangs."},
       "hangs.md"},
      {"HVD402",
       "deadlock",
       "stall",
       "79",
       "Ranks wait for each other in collectives that can never end.",
       {"All ranks have to submit the same collectives: look for one below `if hvd.rank() == 0`.",
        "If one rank has fewer batches: hvd.join(), or drop_last of the DataLoader."},
       "hangs.md"},
      {"HVD403",
       "world-ended",
       "ending",
       "that of the first rank that ended because of it, else 1",
       "A rank ended the world of all ranks, for the reason in the sentence.",
       {"Ranks that are named as stopped wait for SIGCONT: a debugger, SIGSTOP or Ctrl-Z.",
        "Otherwise look at the rank of the sentence first, not at those that waited for it."},
       "hangs.md"},
      {"HVD501",
       "cannot-go-on",
       "internal",
       "1",
       "hvdrun could not go on: workers were not started in time, an elastic job has too few "
       "hosts, or the machine lacks memory, processes or descriptors.",
       {"The sentence names which. ulimit -n and ulimit -u limit descriptors and processes.",
        "--start-timeout and --elastic-timeout give slow hosts more time."},
       "errors.md"},
      {"HVD601",
       "output-lost",
       "",
       "141, 1",
       "The ranks succeeded, but their output could not be written.",
       {"141: the reader of stdout ended first, as in hvdrun ... | head.",
        "1: a full disk, ulimit -f, or a closed stdout."},
       "errors.md#output-that-is-lost"},
  };
}

std::string CodeLine(const FailureCode& code) {
  return Wrapped(code.what, 31, "  " + std::string(code.code) + "  " + std::string(code.name));
}

std::string CodeText(const FailureCode& code) {
  std::string text = Wrapped(std::string(code.code) + " " + std::string(code.name) +
                                 ", exit code " + std::string(code.exit_code),
                             0) +
                     Wrapped(code.what, 0);
  for (std::string_view cure : code.cures) text += Wrapped(cure, 4, "  -");
  return text + "  See docs/" + std::string(code.page) + "\n";
}

// Whether the text contains the number as a whole: 2 is in "1; 2 when", but not in "128 + n".
bool HasNumber(std::string_view text, std::string_view number) {
  const auto is_digit = [&](size_t at) {
    return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
  };
  for (size_t at = text.find(number); at != std::string_view::npos;
       at = text.find(number, at + 1)) {
    if (!is_digit(at - 1) && !is_digit(at + number.size())) return true;
  }
  return false;
}

std::string ExitCodeSentence(int value) {
  const std::string number = std::to_string(value);
  for (const ManRow& row : ExitStatusRows()) {
    if (row.term == number) return std::string(row.text);
  }
  constexpr int kSignals = 64;
  if (value > kSignalBase && value <= kSignalBase + kSignals) {
    const int signal = value - kSignalBase;
    return Format("Signal {} ({}) ended the first rank that failed.", signal, ::strsignal(signal));
  }
  return "That of the first rank that failed: the script, or Python, chose it.";
}

std::string ExitCodeText(int value) {
  const std::string number = std::to_string(value);
  std::string text = Wrapped(ExitCodeSentence(value), 0, "Exit code " + number + ": ");
  for (const FailureCode& code : FailureCodes()) {
    if (HasNumber(code.exit_code, number)) text += CodeLine(code);
  }
  if (value > kSignalBase) text += CodeLine(*FindFailureCode("HVD102"));
  return text;
}

}  // namespace

std::span<const FailureCode> FailureCodes() {
  static const auto* const codes = new std::vector<FailureCode>(MakeCodes());
  return *codes;
}

const FailureCode* FindFailureCode(std::string_view word) {
  const std::string wanted = InLowerCase(word);
  for (const FailureCode& code : FailureCodes()) {
    if (wanted == InLowerCase(code.code) || wanted == code.name) return &code;
  }
  return nullptr;
}

std::string FailureCodesText() {
  std::string text;
  for (const FailureCode& code : FailureCodes()) text += CodeLine(code);
  return text;
}

std::string ExplainText(std::string_view word) {
  if (const FailureCode* code = FindFailureCode(word); code != nullptr) return CodeText(*code);
  constexpr int kLastExitCode = 255;
  const std::optional<int> number = ParseWhole<int>(word);
  return number && *number >= 0 && *number <= kLastExitCode ? ExitCodeText(*number) : "";
}

std::string FailureCodesPage() {
  std::string page =
      "# Failure codes\n\n"
      "This page is made from `configs/failure_codes.cc`; a test fails when it is stale. To make "
      "it "
      "again:\n\n"
      "    build/bin/hvdrun_texts failures > docs/failure-codes.md\n\n"
      "The last line of a job that failed names a code, and the file of `--error-file` has it as "
      "`code`. `hvdrun\n"
      "explain CODE` prints what is below; `hvdrun explain 79` explains an exit code. Codes stay "
      "the "
      "same from\n"
      "release to release. [errors.md](errors.md) has the sentences of the messages.\n\n"
      "| exit code | |\n|---|---|\n";
  for (const ManRow& row : ExitStatusRows())
    page += "| " + std::string(row.term) + " | " + std::string(row.text) + " |\n";
  for (const FailureCode& code : FailureCodes()) {
    page += "\n## " + std::string(code.code) + " " + std::string(code.name) + "\n\n" +
            std::string(code.what) + "\n\nExit code: " + std::string(code.exit_code) + ".";
    if (!code.kind.empty()) page += " `kind` in the error file: `" + std::string(code.kind) + "`.";
    page += "\n\n";
    for (std::string_view cure : code.cures) page += "- " + std::string(cure) + "\n";
    page += "\n[More](" + std::string(code.page) + ")\n";
  }
  return page;
}

}  // namespace hvd
