// The warden: the tiny parent of an agent. It waits for the agent and, when the agent has ended,
// ends every process that the agent left. It has little that can fail: no descriptors but the ends
// of two pipes, no threads, hardly any memory.
#ifndef HVD_LAUNCHER_AGENT_WARDEN_H_
#define HVD_LAUNCHER_AGENT_WARDEN_H_

#include <functional>
#include <string>

#include "runtime/base/unique_fd.h"

namespace hvd {

// The agent's ends of the pipes to its warden.
struct WardenLine {
  UniqueFd alive;  // end of file: the warden is dead
  UniqueFd pulse;  // for SendPulse
};

// Forks: runs `agent` in the child and returns its exit code to the child's main; in the parent
// (the warden) returns when nothing of the job is left, with the agent's exit code (128 + n when
// signal n ended it). An agent that sends no pulse is killed once no process holds its stream.
// `of_agent`: a descriptor that the agent alone keeps; -1: none.
int RunUnderWarden(const std::string& job_id, const std::function<int(WardenLine line)>& agent,
                   int of_agent = -1);

// Redirects stdin and stdout to /dev/null, so that the driver sees the end of the agent's stream:
// one process alone may hold it.
void LetGoOfStream();

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_WARDEN_H_
