// hvdrun: starts distributed training jobs and keeps them alive.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "cmd/hvdrun/verbs.h"
#include "configs/verb_list.h"

namespace {

// Descriptors 0 to 2 exist from here on, so that no socket of ours ever gets one of these numbers.
// Stdin is empty then; a write to stdout or stderr fails as it would if they were closed, so that
// output is not lost in silence.
void FillStandardDescriptors() {
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO) ::close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  FillStandardDescriptors();
  ::signal(SIGXFSZ,
           SIG_IGN);  // a write beyond `ulimit -f` is an error with a sentence, not our end
  std::vector<std::string> args(argv + 1, argv + argc);
  std::string verb = args.empty() ? "" : args[0];
  std::vector<std::string> rest(args.begin() + (args.empty() ? 0 : 1), args.end());
  if (rest.size() == 1 && (rest[0] == "--help" || rest[0] == "-h")) {
    if (std::string help = hvd::VerbHelpText(verb); !help.empty()) return hvd::PrintText(help);
  }
  if (verb == "agent") return hvd::AgentVerb(rest);
  if (verb == "doctor") return hvd::DoctorVerb(rest);
  if (verb == "env") return hvd::EnvVerb(rest);
  if (verb == "ps") return hvd::PsVerb(rest);
  if (verb == "stop") return hvd::StopVerb(rest);
  return hvd::RunVerb(args);
}
