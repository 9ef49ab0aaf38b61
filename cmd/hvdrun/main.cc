// hvdrun: starts distributed training jobs and keeps them alive.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "cmd/hvdrun/verbs.h"
#include "configs/help_text.h"

namespace {

// Opens descriptors 0 to 2 if they are closed, so that no socket ever gets one of these numbers.
// Reading stdin then gives its end; writing to stdout or stderr fails as if they were closed, so
// that lost output is reported.
void FillStandardDescriptors() {
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO) ::close(fd);
}

struct NamedVerb {
  const char* name;
  int (*run)(const std::vector<std::string>& args);
};
constexpr NamedVerb kVerbs[] = {
    {"agent", hvd::AgentVerb},     {"attach", hvd::AttachVerb}, {"doctor", hvd::DoctorVerb},
    {"drain", hvd::DrainVerb},     {"dump", hvd::DumpVerb},     {"env", hvd::EnvVerb},
    {"explain", hvd::ExplainVerb}, {"forget", hvd::ForgetVerb}, {"help", hvd::HelpVerb},
    {"logs", hvd::LogsVerb},       {"ps", hvd::PsVerb},         {"scale", hvd::ScaleVerb},
    {"status", hvd::StatusVerb},   {"stop", hvd::StopVerb},     {"top", hvd::TopVerb},
    {"trace", hvd::TraceVerb},     {"tune", hvd::TuneVerb},     {"worker", hvd::WorkerVerb}};

// The help of `hvdrun VERB --help`; empty: not asked for.
std::string HelpAskedFor(const std::string& verb, const std::vector<std::string>& rest) {
  const bool asked = rest.size() == 1 && (rest[0] == "--help" || rest[0] == "-h");
  return asked ? hvd::VerbHelpText(verb) : "";
}

}  // namespace

int main(int argc, char** argv) {
  FillStandardDescriptors();
  // A write beyond `ulimit -f` is to fail with a message, not to end this process.
  ::signal(SIGXFSZ, SIG_IGN);
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.empty()) return hvd::RunVerb(args);
  const std::vector<std::string> rest(args.begin() + 1, args.end());
  if (std::string help = HelpAskedFor(args[0], rest); !help.empty()) return hvd::PrintText(help);
  for (const NamedVerb& verb : kVerbs) {
    if (args[0] != verb.name) continue;
    if (const std::optional<int> code = hvd::RunOnHosts(verb.name, rest)) return *code;
    return verb.run(rest);
  }
  return hvd::RunVerb(args);
}
