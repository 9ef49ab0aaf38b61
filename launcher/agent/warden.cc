#include "launcher/agent/warden.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>

#include "launcher/agent/pulse.h"
#include "launcher/process/cgroup.h"
#include "launcher/process/one_process.h"
#include "launcher/process/process_end.h"
#include "launcher/process/process_tree.h"
#include "launcher/process/recorder_folder.h"

namespace hvd {
namespace {

constexpr Duration kKillLimit = std::chrono::seconds(3);

// The process on this host whose end cuts the agent off from the driver: our parent (hvdrun itself,
// or a server of ssh), or the process that made the last connection.
class Bearer {
 public:
  void Is(pid_t client) {
    if (client == pid_) return;
    pid_ = client;
    client_ = LookAtProcess(client);
  }
  bool Alive() const {
    if (pid_ == 0) return ::getppid() == parent_;
    std::optional<ProcessInfo> now = LookAtProcess(pid_);
    return now && client_ && now->start_ticks == client_->start_ticks && now->state != 'Z';
  }

 private:
  const pid_t parent_ = ::getppid();
  pid_t pid_ = 0;
  std::optional<ProcessInfo> client_;
};

// Watches until the agent has ended, by itself or killed by us.
void WatchPulse(pid_t agent, int pulses, Bearer bearer) {
  constexpr auto kLookMs =
      std::chrono::duration_cast<std::chrono::milliseconds>(kPulseEvery).count();
  PulseWatch watch;
  while (true) {
    pollfd line{pulses, POLLIN, 0};
    ::poll(&line, 1, static_cast<int>(kLookMs));
    PulseReading heard = OnHeartbeat(pulses);
    if (heard.newest) {
      bearer.Is(heard.newest->bearer);
      watch.Heard(*heard.newest);
    } else if (!heard.ended && watch.Missed(bearer.Alive())) {
      ::kill(agent, SIGKILL);  // it is not reaped yet
      return;
    }
    if (heard.ended) return;
  }
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

bool MakePipe(UniqueFd& reading, UniqueFd& writing, int flags) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC | flags) != 0) return false;
  reading.Reset(ends[0]);
  writing.Reset(ends[1]);
  return true;
}

}  // namespace

void LetGoOfStream() {
  const UniqueFd null_fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ::dup2(null_fd.get(), STDIN_FILENO);
  ::dup2(null_fd.get(), STDOUT_FILENO);
}

int RunUnderWarden(const std::string& job_id, const std::function<int(WardenLine)>& agent,
                   int of_agent) {
  Spared strangers;
  if (HasChildren()) strangers.own.emplace();  // of the shell that became this process
  BecomeSubreaper();
  WardenLine line;
  UniqueFd held_by_warden, pulses;
  if (!MakePipe(line.alive, held_by_warden, 0) || !MakePipe(pulses, line.pulse, O_NONBLOCK)) {
    std::perror("hvdrun agent: no pipe could be made");
    return 1;
  }
  const UniqueFd group = MakeCgroup(job_id);
  const Bearer bearer;
  pid_t pid = ::fork();
  if (pid < 0) {
    std::perror("hvdrun agent: no process could be made");
    return 1;
  }
  if (pid == 0) {
    held_by_warden.Reset();
    pulses.Reset();
    return agent(std::move(line));
  }
  line = {};
  if (of_agent >= 0) ::close(of_agent);
  for (int signal : {SIGUSR1, SIGUSR2}) ::signal(signal, SIG_IGN);  // its agent passes them on
  LetGoOfStream();
  WatchPulse(pid, pulses.get(), bearer);
  int code = WaitFor(pid);
  if (!ReapAndCheckNoChildren() || code != 0) KillEverything(job_id, strangers, kKillLimit);
  RemoveCgroup(job_id);
  RemoveRecorderFolder(RecorderFolder(job_id, ::getpid()));
  return code;
}

}  // namespace hvd
