// hvdrun agent, the part on each host. Under hvdrun: first the warden, and the agent below it; the
// stream is stdin and stdout, or a connection that the agent of a step makes first. --resume and
// --clear: side commands on a host with such an agent. --adopt: an agent without a driver; its
// listening socket is stdin. --examine: a child of the agent that prints the facts of its host.
#include "launcher/agent/agent.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "cmd/hvdrun/verbs.h"
#include "launcher/agent/inspection/host_inspection.h"
#include "launcher/agent/run_side_command.h"
#include "launcher/agent/warden.h"
#include "launcher/channels/bundle/bundle.h"
#include "launcher/channels/bundle/remote_script.h"
#include "launcher/channels/local_channel.h"
#include "launcher/external/adopt/adopt.h"
#include "launcher/output/output.h"
#include "launcher/overlay/dial/dial_driver.h"
#include "launcher/process/fault.h"
#include "launcher/process/jobs/job_id.h"
#include "launcher/process/spawn.h"
#include "runtime/base/clock.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/net/world_secret.h"

namespace hvd {
namespace {

constexpr int kUnconnected = 3;

std::optional<std::string> JobIdAfter(const char* word, const std::vector<std::string>& args) {
  if (args.size() != 2 || args[0] != word || !ParseJobId(args[1])) return std::nullopt;
  return args[1];
}

// Moves the stream off descriptors 0 and 1, so that nothing can write into it by accident.
UniqueFd MoveDescriptor(int fd) {
  UniqueFd taken(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  UniqueFd null_fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ::dup2(null_fd.get(), fd);
  return taken;
}

// Whether it is a pipe or a socket with hvdrun at its other end, rather than a terminal, a file or
// /dev/null.
bool IsStream(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

// The user's stdin, for rank 0; -1: none.
int UserStdin() {
  if (!GetEnv(kUserStdinVariable)) return -1;
  ::unsetenv(kUserStdinVariable);
  return ::fcntl(kKeptDescriptor, F_SETFD, FD_CLOEXEC) == 0 ? kKeptDescriptor : -1;
}

// `line`: the connection of an agent that has dialed, without its socket, which is its stdout.
int RunHere(const std::string& job_id, WardenLine warden, std::optional<SealedLine> line,
            int user_stdin = -1) {
  SetLog({LogLevel::kWarning, "hvdrun agent"});
  AgentOptions options;
  options.job_id = job_id;
  options.executable = OwnPath();
  options.input = MoveDescriptor(STDIN_FILENO);
  options.output = MoveDescriptor(STDOUT_FILENO);
  if (line) {
    line->socket = std::move(options.output);
    options.line = std::move(line);
  }
  options.warden = std::move(warden);
  options.user_stdin.Reset(user_stdin);
  if (FaultAsked("agent-exits")) return kUsageError;
  if (FaultAsked("agent-stops")) ::raise(SIGSTOP);
  if (FaultAsked("agent-babbles")) WriteAll(options.output.get(), std::string(100, 'x'));
  return RunAgent(std::move(options));
}

// An agent of a step: its connection to hvdrun replaces its stdout, so that the warden releases it
// like any stream.
Result<SealedLine> Dial(const std::string& job_id) {
  if (FaultAsked("agent-does-not-connect")) return Aborted("a test wants it so");
  const DialLimits limits;
  const SteadyClock clock;
  Result<Invitation> invitation = ReadInvitation(STDIN_FILENO, limits.invitation);
  if (!invitation.ok()) return invitation.status();
  Result<SealedLine> line = DialDriver(*invitation, job_id, limits.connection, clock);
  if (!line.ok()) return line.status();
  ::dup2(line->socket.get(), STDOUT_FILENO);
  line->socket.Reset();
  return line;
}

int RunDialed(const std::string& job_id) {
  Result<SealedLine> line = Dial(job_id);
  if (!line.ok()) {
    std::string words = AgentGreeting(job_id);
    words.back() = ' ';
    WriteAll(STDOUT_FILENO, words + UnconnectedText(line.status().message()) + "\n");
    return kUnconnected;
  }
  return RunUnderWarden(job_id, [&](WardenLine warden) {
    return RunHere(job_id, std::move(warden), std::move(*line));
  });
}

// The rank that started this process waits for it, so it exits as soon as the agent has been
// forked. The agent keeps nothing of the rank's: neither its session, nor its directory, nor an end
// of its pipes.
int Adopt(const std::vector<std::string>& args) {
  SetLog({LogLevel::kWarning, "hvdrun agent"});
  Result<AdoptOptions> options = ParseAdoptArguments(args);
  if (!options.ok()) {
    WriteAll(STDERR_FILENO,
             "hvdrun agent: started by hvd.init() itself, as: hvdrun agent --adopt ID "
             "--slots N --size N; " +
                 options.status().message() + "\n");
    return kUsageError;
  }
  // An invalid secret was already reported by the rank that started this process.
  Result<std::string> secret = FindWorldSecret();
  if (!secret.ok()) return kUsageError;
  options->secret = std::move(*secret);
  pid_t pid = ::fork();
  if (pid < 0) {
    std::perror("hvdrun agent: no process could be made");
    return 1;
  }
  if (pid > 0) return 0;
  ::setsid();
  if (::chdir("/") != 0) return 1;
  CloseOtherDescriptors();
  UniqueFd listener = MoveDescriptor(STDIN_FILENO);
  ::dup2(STDIN_FILENO, STDOUT_FILENO);
  ::dup2(STDIN_FILENO, STDERR_FILENO);
  return RunAdoptingAgent(std::move(*options), std::move(listener));
}

// The line that the script on another host reads: version and build.
int PrintBuild() {
  Result<std::string> build = InstalledBuildId(OwnPath());
  if (build.ok()) return PrintText(HVD_VERSION " " + *build + "\n");
  WriteAll(STDERR_FILENO, "hvdrun agent: " + build.status().message() + "\n");
  return 1;
}

}  // namespace

int AgentVerb(const std::vector<std::string>& args) {
  ::prctl(PR_SET_NAME, "hvdrun");  // not "exe", after the link that it was started by
  if (!args.empty() && args[0] == "--adopt") return Adopt(args);
  if (args.size() == 3 && args[0] == "--examine") {
    ExamineHere(args[1], args[2]);
    return 0;
  }
  if (args.size() == 1 && args[0] == "--examine-gpus") {
    ExamineGpusHere();
    return 0;
  }
  if (args.size() == 1 && args[0] == "--build") return PrintBuild();
  if (args.size() == 3 && args[0] == "--resume" && ParseJobId(args[1]))
    return RunResume(args[1], args[2]);
  if (std::optional<std::string> id = JobIdAfter("--clear", args)) return RunClear(*id);
  const std::optional<std::string> dialing = JobIdAfter("--dial", args);
  const std::optional<std::string> job_id = dialing ? dialing : JobIdAfter("--job", args);
  if (!job_id) {
    WriteAll(STDERR_FILENO, "hvdrun agent: started by hvdrun itself, as: hvdrun agent --job ID\n");
    return kUsageError;
  }
  if (!IsStream(STDIN_FILENO)) {
    WriteAll(STDERR_FILENO,
             "hvdrun agent: started by hvdrun itself, which talks to it over its stdin; this stdin "
             "is neither a pipe nor a socket, so nothing was started\n");
    return kUsageError;
  }
  if (dialing) return RunDialed(*dialing);
  const int user_stdin = UserStdin();
  return RunUnderWarden(
      *job_id,
      [&](WardenLine warden) {
        return RunHere(*job_id, std::move(warden), std::nullopt, user_stdin);
      },
      user_stdin);
}

}  // namespace hvd
