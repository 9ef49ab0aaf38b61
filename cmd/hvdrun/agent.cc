// The verb of one host: the warden first, the agent under it. The stream is stdin and stdout.
#include "launcher/agent.h"

#include <fcntl.h>
#include <unistd.h>

#include <climits>
#include <optional>

#include "cmd/hvdrun/verbs.h"
#include "launcher/job_id.h"
#include "launcher/output.h"
#include "launcher/warden.h"
#include "runtime/base/log.h"

namespace hvd {
namespace {

std::string OwnPath() {
  char path[PATH_MAX] = {};
  ssize_t length = ::readlink("/proc/self/exe", path, sizeof path - 1);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : "/usr/bin/hvdrun";
}

std::optional<std::string> JobIdOf(const std::vector<std::string>& args) {
  if (args.size() != 2 || args[0] != "--job" || !ParseJobId(args[1])) return std::nullopt;
  return args[1];
}

// Takes the stream off descriptors 0 and 1, so that nothing can write into it by accident.
UniqueFd TakeDescriptor(int fd) {
  UniqueFd taken(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  UniqueFd null_fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ::dup2(null_fd.get(), fd);
  return taken;
}

int RunHere(const std::string& job_id, UniqueFd warden_alive) {
  SetLog(LogLevel::kWarning, "hvdrun agent");
  AgentOptions options;
  options.job_id = job_id;
  options.executable = OwnPath();
  options.input = TakeDescriptor(STDIN_FILENO);
  options.output = TakeDescriptor(STDOUT_FILENO);
  options.warden_alive = std::move(warden_alive);
  return RunAgent(std::move(options));
}

}  // namespace

int AgentVerb(const std::vector<std::string>& args) {
  std::optional<std::string> job_id = JobIdOf(args);
  if (!job_id) {
    WriteAll(STDERR_FILENO, "hvdrun agent: started by hvdrun itself, as: hvdrun agent --job ID\n");
    return kUsageError;
  }
  return RunUnderWarden(
      *job_id, [&](UniqueFd warden_alive) { return RunHere(*job_id, std::move(warden_alive)); });
}

}  // namespace hvd
