// The warden: the tiny parent of an agent. It waits for the agent and, when the agent has ended,
// ends all that the agent left. It owns nothing that can fail: no descriptors but ends of two
// pipes, no threads, no memory to speak of.
#ifndef HVD_LAUNCHER_AGENT_WARDEN_H_
#define HVD_LAUNCHER_AGENT_WARDEN_H_

#include <functional>
#include <string>

#include "runtime/base/unique_fd.h"

namespace hvd {

// The agent's hold on its warden.
struct WardenLine {
  UniqueFd alive;  // its end means that the warden is dead
  UniqueFd pulse;  // for SendPulse
};

// Forks: runs `agent` in the child and returns its exit code to the child's main; in the parent
// (the warden) returns when nothing of the job is left, with the agent's exit code (128 + n when
// signal n ended it). An agent without a pulse is killed once nobody bears its stream.
// `of_agent`: a descriptor that the agent alone keeps; -1: none.
int RunUnderWarden(const std::string& job_id, const std::function<int(WardenLine line)>& agent,
                   int of_agent = -1);

// stdin and stdout become /dev/null. The stream of an agent has one holder: its end has to show.
void LetGoOfStream();

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_WARDEN_H_
