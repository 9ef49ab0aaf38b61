#include "launcher/agent/run_side_command.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "launcher/agent/resume_listener.h"
#include "launcher/agent/warden.h"
#include "launcher/channels/bundle/remote_script.h"
#include "launcher/channels/bundle/side_command.h"
#include "launcher/output/output.h"
#include "launcher/process/cgroup.h"
#include "launcher/process/jobs/job_id.h"
#include "launcher/process/process_tree.h"
#include "runtime/net/link.h"

namespace hvd {
namespace {

constexpr Duration kClearLimit = std::chrono::seconds(3);
constexpr int kNoAgent = 3;

void WaitForEnd(int socket) {
  char byte = 0;
  while (true) {
    ssize_t got = ::read(socket, &byte, 1);
    if (got == 0 || (got < 0 && errno != EINTR)) return;
  }
}

}  // namespace

int RunResume(const std::string& job_id, const std::string& address) {
  ::signal(SIGPIPE, SIG_IGN);
  Result<UniqueFd> agent = ConnectLinkIfAny(address);
  if (!agent.ok() || !agent->valid()) {
    std::string why = agent.ok() ? "" : ": " + agent.status().message();
    WriteAll(STDOUT_FILENO, NoAgentText(job_id) + why + "\n");
    return kNoAgent;
  }
  WriteAll(STDOUT_FILENO, AgentGreeting(job_id));
  if (!SendStreamEnds(agent->get(), STDIN_FILENO, STDOUT_FILENO).ok()) return kNoAgent;
  LetGoOfStream();  // only the agent holds it now: when it lets go, the other side sees the end
  WaitForEnd(agent->get());
  return 0;
}

int RunClear(const std::string& job_id) {
  ::signal(SIGPIPE, SIG_IGN);
  WriteAll(STDOUT_FILENO, "hvdrun-clear " + job_id + "\n");  // we are there
  Spared strangers;
  strangers.own.emplace();  // a child can only be one of the shell that became this process
  bool all = KillEverything(job_id, strangers, kClearLimit);
  RemoveCgroup(job_id);
  return all ? 0 : 1;
}

}  // namespace hvd
