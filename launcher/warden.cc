#include "launcher/warden.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "launcher/cgroup.h"
#include "launcher/process_tree.h"

namespace hvd {
namespace {

constexpr Duration kKillLimit = std::chrono::seconds(3);
constexpr int kSignalBase = 128;

// The stream is the agent's: if the warden held it, too, its end would not show.
void LetGoOfStream() {
  int null_fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(null_fd, 0);
  ::dup2(null_fd, 1);
  ::close(null_fd);
}

int WaitFor(pid_t agent) {
  while (true) {
    int status = 0;
    pid_t pid = ::waitpid(-1, &status, 0);
    if (pid == agent)
      return WIFSIGNALED(status) ? kSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
    if (pid < 0 && errno == ECHILD) return 1;
  }
}

}  // namespace

int RunUnderWarden(const std::string& job_id, const std::function<int(UniqueFd)>& agent) {
  Spared strangers;
  if (HasChildren()) strangers.own.emplace();  // of the shell that became this process
  BecomeSubreaper();
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    std::perror("hvdrun agent: no pipe could be made");
    return 1;
  }
  UniqueFd alive(ends[0]), held_by_warden(ends[1]);
  MakeCgroup(job_id);
  pid_t pid = ::fork();
  if (pid < 0) {
    std::perror("hvdrun agent: no process could be made");
    return 1;
  }
  if (pid == 0) {
    held_by_warden.Reset();
    return agent(std::move(alive));
  }
  alive.Reset();
  LetGoOfStream();
  int code = WaitFor(pid);
  if (!ReapAndCheckNoChildren() || code != 0) KillEverything(job_id, strangers, kKillLimit);
  RemoveCgroup(job_id);
  return code;
}

}  // namespace hvd
